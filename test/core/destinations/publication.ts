import { createCipheriv } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listResources, type ListName } from '../../../core/billing/resources/lists.ts'
import type { PartFile, Publication } from '../../../core/destinations/destination.ts'
import type { ReadFacts } from '../../../core/destinations/manifest.ts'
import type { Privacy } from '../../../core/tables/privacy.ts'
import { createRowEncoder } from '../../../core/tables/row-encoder.ts'
import { addTotals, judgeTotals, noTotals } from '../../../core/tables/totals.ts'
import { writePart } from '../exports/write-part.ts'
import { parseLossless } from '../../../core/billing/lossless-json.ts'

export const facts: ReadFacts = {
  verdict: 'proven',
  reasons: [],
  scope: ['every record that was in the list throughout and was created up to completeThrough is here once'],
  completeThrough: '2026-03-01T02:59:00.000000Z',
  newestUpdated: '2026-03-01T02:59:00.000000Z',
  clock: 'service',
  ordering: 'created',
  startedAt: '2026-03-01T03:00:00.000Z',
  finishedAt: '2026-03-01T03:00:10.000Z',
  countBefore: 3,
  countAfter: 3,
  requests: 2,
  windows: 2,
  linksRepaired: 0,
  records: 3,
  duplicatesDropped: 0,
  ties: [],
  totals: { columns: {} },
  drift: {},
  unknownFields: {},
  absentFields: [],
}

/**
 * Customers `b0`, `b1`, ... of 1 kB each, with one contact, in batches of 1 MB; their names are noise, so that no
 * destination packs them into less.
 */
export function noise(bytes: number): string[][] {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 42), Buffer.alloc(16))
  const zeros = Buffer.alloc(660)
  const name = () => cipher.update(zeros).toString('base64url')
  const customer = (at: number) => `{"id":"b${at}","name":"${name()}","contacts":[{}]}`
  const batches: string[][] = []
  for (let at = 0; at < bytes / 1_000; at += 1_000)
    batches.push(
      Array.from({ length: Math.min(1_000, bytes / 1_000 - at) }, (_, index) => customer(at + index)),
    )
  return batches
}

/** A folder for a test's parts and exports, with letters that mean something to a URL, SQL or a pattern. */
/** With what the folder of each publication begins: when its run was started. */
export const start = '2026-03-01T02-00-00Z'

export async function createWorkplace() {
  const folder = await mkdtemp(join(tmpdir(), `destinations #1 %41 'ñ' [*] \\-`))
  let made = 0

  /** Parts as a read leaves them: a file for each batch of records. */
  async function toParts(resource: ListName, batches: readonly (readonly string[])[], privacy: Privacy = {}) {
    const encoder = createRowEncoder({ resource: listResources[resource], privacy })
    const parts: PartFile[] = []
    const rejected: PartFile[] = []
    const totals = noTotals()
    const drift: ReadFacts['drift'] = {}
    const write = async (to: PartFile[], table: string, { text, rows }: { text: string; rows: number }) => {
      const path = join(folder, `${made++}.${table}.part`)
      to.push(await writePart({ table, path, text, rows }))
    }
    for (const batch of batches) {
      const encoded = encoder.encode(batch.map(parseLossless))
      for (const [index, rows] of encoded.tables.entries())
        await write(parts, encoder.tables[index]!.name, rows)
      if (encoded.rejected.rows > 0) await write(rejected, 'rejected', encoded.rejected)
      addTotals(totals, encoded.totals)
      for (const [path, { count, example }] of Object.entries(encoded.drift.misfits))
        drift[path] = { count: (drift[path]?.count ?? 0) + count, example }
    }
    return { tables: encoder.tables, parts, rejected, totals: judgeTotals(encoder.tables, totals, drift) }
  }

  return {
    folder,
    exports: join(folder, 'exports'),
    toParts,
    /** A publication of records given as JSON text, in batches. */
    async toPublication(
      resource: ListName,
      batches: readonly (readonly string[])[],
      more: Partial<Publication> = {},
      privacy: Privacy = {},
    ): Promise<Publication> {
      const { totals, ...parts } = await toParts(resource, batches, privacy)
      return {
        run: 'export-customers-2026-03-01',
        begunAt: '2026-03-01T02:00:00.000Z',
        resource,
        workspace: 'acc_1',
        baseUrl: 'https://billing.example/api/v1',
        testMode: false,
        mode: 'full',
        filters: {},
        capped: false,
        excluded: [],
        hashed: [],
        ...parts,
        versions: { connector: '0.1.0' },
        folder: join(folder, 'exports'),
        ...more,
        facts: { ...(more.facts ?? facts), totals },
      }
    },
    close: () => rm(folder, { recursive: true, force: true }),
  }
}
export type Workplace = Awaited<ReturnType<typeof createWorkplace>>
