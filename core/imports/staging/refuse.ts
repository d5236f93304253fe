import type { FileCheck } from '../check.ts'
import { importKinds } from '../kinds.ts'
import type { ImportPlan } from '../plan.ts'
import type { Existing } from './existing-in-service.ts'
import { InvalidFile, RowsTaken } from '../refusals.ts'
import type { Stock } from './match-ledger.ts'

/** Rows to send again have to be rows of the file. @throws {InvalidFile} */
export function refuseMissing({ plan, stock, check }: { plan: ImportPlan; stock: Stock; check: FileCheck }) {
  if (plan.sendAgain.length === 0 || stock.valid === plan.sendAgain.length) return
  throw new InvalidFile(
    `Of the rows ${plan.sendAgain.join(', ')} to send again only ${stock.valid} begin a valid ${importKinds[plan.kind].one} in ${check.file}. Name the first row of each.`,
  )
}

/** What another run has, or the service, is not sent without a word about it. @throws {RowsTaken} */
export function refuseTaken({
  plan,
  stock,
  existing,
}: {
  plan: ImportPlan
  stock: Stock
  existing: Existing
}): void {
  const all = stock.valid
  const left = all - stock.doneEarlier.size
  for (const [run, { done, others }] of stock.held) {
    if (others.length > 0)
      throw new RowsTaken(
        `${others.length} of ${all} rows are in the run ${run}, which is not done with them (rows ${few(others)}). Let it end, with its own command where it was stopped, or resolve what it has parked, first.`,
      )
    if (done > 0 && plan.done === 'refuse')
      throw new RowsTaken(
        `${done.toLocaleString('en')} of ${all.toLocaleString('en')} rows were done by run ${run}; --done skip sends the other ${left.toLocaleString('en')}.`,
      )
  }
  if (existing.ids.size === 0 || plan.existing !== 'refuse') return
  throw new RowsTaken(
    `${existing.ids.size.toLocaleString('en')} of ${all.toLocaleString('en')} rows are in the service already (as ${few([...existing.ids.values()].flat())}); --existing skip leaves them out, --existing create sends them all the same.`,
  )
}

const mostNamed = 10
const few = (names: readonly (string | number)[]) =>
  names.length <= mostNamed ? names.join(', ') : `${names.slice(0, mostNamed).join(', ')} ...`
