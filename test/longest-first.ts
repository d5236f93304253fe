import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that take longest, longest first: one of them begun last would run alone, with the other cores idle. Vitest
 * knows how long a file took only where the suite has run before; on a fresh clone it takes the file's size for it.
 */
const longest = [
  'import/crash',
  'import/control',
  'package/package',
  'export/crash',
  'destinations/duckdb',
  'recovery/control',
  'schedules/commands',
  'recovery/bounds',
  'export/two-commands',
  'export/claims',
  'import/outages',
  'export/run-commands',
  'scripts/dev-server',
  'export/command',
  'export/several-destinations',
  'recovery/command',
  'destinations/postgres',
  'export/warehouse',
  'console/dangerous',
  'notify/notices',
  'import/terminal',
  'worker/metrics',
  'import/local',
  'export/check',
  'documents/crash',
  'export/publish-command',
  'check/broken-set-ups',
  'export/frozen-worker',
  'recovery/recovery',
  'recovery/crash',
  'export/control',
  'destinations/postgres-faults',
  'scripts/demo',
  'scripts/verify',
  'recovery/edges',
  'monitoring/prometheus',
  'changes/killed-sender',
  'destinations/duckdb-faults',
  'export/disk',
  'documents/fetch',
  'schedules/watch',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- Vitest's own, which sorts no array in place
    const known = await super.sort(files)
    return known.toSorted((a, b) => placeOf(a) - placeOf(b))
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const at = longest.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`))
  return at === -1 ? longest.length : at
}
