import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that take longest, longest first: one of them begun last would run alone, with the other cores idle. Vitest
 * knows how long a file took only where the suite has run before; on a fresh clone it takes the file's size for it.
 */
const longest = [
  'import/crash',
  'import/control',
  'recovery/bounds',
  'check/broken-set-ups',
  'export/several-destinations',
  'export/run-commands',
  'export/command',
  'import/terminal',
  'schedules/commands',
  'import/outages',
  'recovery/control',
  'export/crash',
  'scripts/dev-server',
  'export/two-commands',
  'schedules/week',
  'recovery/crash',
  'security/leaks',
  'package/package',
  'recovery/command',
  'destinations/postgres-faults',
  'worker/metrics',
  'console/operator',
  'console/dangerous',
  'export/warehouse',
  'recovery/recovery',
  'documents/fetch',
  'destinations/duckdb',
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
