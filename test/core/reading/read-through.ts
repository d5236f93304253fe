import { customers } from '../../../core/billing/resources/customers.ts'
import { escapeId, writeLines } from '../../../core/reading/certificate.ts'
import { readList } from '../../../core/reading/read-list.ts'
import type { ReadOptions, ReadStep, RangeState } from '../../../core/reading/range-state.ts'
import type { ReadOutcome } from '../../../core/reading/outcome.ts'
import type { Random } from './drifting-list.ts'

export interface Taken {
  outcome: ReadOutcome
  /** Ids in the order they came. */
  ids: string[]
  /** The same records as an export has them. */
  rows: Row[]
  /** Its certificate, without the first and the last line. */
  certificate: string
  /** The numbers of the records of `any-service.ts`, also of those without a usable id. */
  serials: unknown[]
  rejected: unknown[]
  restarts: number
}

export interface Row {
  id: string
  created: string
  updated: string
}

/** The positions of a record's rows in the table of contacts: none, one or two. */
export const contactsOf = (id: string): string[] => ['1', '2'].slice(0, id.charCodeAt(id.length - 1) % 3)

/** The keys of a record as a certificate has them. */
export const keysOf = ({ id, contacts }: { id: string; contacts: readonly string[] }): string =>
  `${escapeId(id)};${contacts.join(' ')}`

/** What was written of a read so far. */
export class WrittenRead {
  rows: Row[] = []
  certificate = ''
  serials: unknown[] = []
  rejected: unknown[] = []

  get ids(): string[] {
    return this.rows.map(({ id }) => id)
  }

  get taken() {
    const { ids, rows, certificate, serials, rejected } = this
    return { ids, rows, certificate, serials, rejected }
  }

  add({ records, rejected, lines }: ReadStep): void {
    this.serials.push(...records.map(({ serial }) => serial))
    this.rejected.push(...rejected.map((one) => (one as { serial?: unknown }).serial))
    const rows = records.map(({ id, created, updated }) => ({
      id: String(id),
      created: String(created),
      updated: String(updated),
    }))
    this.rows.push(...rows)
    const written = rows.map(({ id }) => keysOf({ id, contacts: contactsOf(id) }))
    this.certificate += writeLines(lines, { written, toWritten: (id) => id })
  }

  copy(): WrittenRead {
    const copy = new WrittenRead()
    copy.join(this)
    return copy
  }

  join({ rows, certificate, serials, rejected }: WrittenRead): void {
    this.rows = this.rows.concat(rows)
    this.certificate += certificate
    this.serials = this.serials.concat(serials)
    this.rejected = this.rejected.concat(rejected)
  }
}

/** A read of customers that nothing is asked of. */
export const readOptions = {
  resource: customers,
  testMode: false,
  readLagMs: 60_000,
  now: () => 1_800_000_000_000,
}

/** The whole of a set of ids, as a caller keeps it on disk. */
export function createIdSet(written: Iterable<string>) {
  const ids = new Set(written)
  return {
    add: (some: readonly { id: string }[]) =>
      some.map(({ id }) => {
        const isNew = !ids.has(id)
        ids.add(id)
        return isNew
      }),
  }
}

/** The ids that are there more than once. */
export function repeatedIn(ids: readonly string[]): string[] {
  const seen = new Set<string>()
  return ids.filter((id) => seen.size === seen.add(id).size)
}

/**
 * Reads a list to its end. With `crash`, the process dies after any step with that chance: what came since the
 * last checkpoint is lost, and another one resumes from its state, which was JSON text in between.
 */
export async function readThrough(
  options: Pick<ReadOptions, 'fetchPage'> & Partial<ReadOptions>,
  { crash = 0, random = () => 1 }: { crash?: number; random?: Random } = {},
): Promise<Taken> {
  let kept = new WrittenRead()
  let checkpoint: string | undefined
  for (let restarts = 0; ; restarts++) {
    const written = kept.copy()
    const read = readList({
      ...readOptions,
      idSet: () => Promise.resolve(createIdSet(written.ids)),
      repeatedIds: () => Promise.resolve(repeatedIn(written.ids)),
      ...options,
      ...(checkpoint !== undefined && { state: JSON.parse(checkpoint) as RangeState }),
    })
    for (;;) {
      const step = await read.next()
      if (step.done === true) {
        return { outcome: step.value, ...written.taken, restarts }
      }
      written.add(step.value)
      if (random() < 0.5) {
        checkpoint = JSON.stringify(step.value.state)
        kept = written.copy()
      }
      if (restarts < 200 && random() < crash) break
    }
    await read.return(undefined as never)
  }
}
