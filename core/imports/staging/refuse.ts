import type { FileCheck } from '../check.ts'
import { InvalidFile, quote, RowsTaken, say } from '../errors.ts'
import { importKinds } from '../kinds.ts'
import type { ImportPlan } from '../input.ts'
import { toOutwardSentence, toSentence } from '../problems.ts'
import type { Existing } from './existing-in-service.ts'
import type { LedgerMatches } from './match-ledger.ts'

/** Rejects a file with a problem that concerns all of it or, with `stop`, with any. @throws {InvalidFile} */
export function refuseInvalid(check: FileCheck, onInvalid: 'stop' | 'skip'): void {
  const [first] = check.problems
  if (first === undefined || (!check.stopped && onInvalid === 'skip')) return
  const many = check.problemCount === 1 ? '1 problem' : `${check.problemCount.toLocaleString('en')} problems`
  const outward = `${toOutwardSentence(first)}. The values are in check.json in the run's folder.`
  throw new InvalidFile(
    say`${check.file} has ${many}, so nothing was sent: ${quote(toSentence(first), outward)}`,
  )
}

/** Rejects rows to send again that are not in the file. @throws {InvalidFile} */
export function refuseMissing({
  plan,
  matches,
  check,
}: {
  plan: ImportPlan
  matches: LedgerMatches
  check: FileCheck
}) {
  const { sendAgain } = plan
  if (sendAgain.length === 0 || matches.valid === sendAgain.length) return
  throw new InvalidFile(
    `--send-again ${sendAgain.join(',')}: only ${matches.valid} of these ${sendAgain.length} rows begin a valid ${importKinds[plan.kind].one} in ${check.file}. Name the first row of each.`,
  )
}

/**
 * Rejects rows that another run or the service already has, unless the plan allows them. @throws {RowsTaken}
 */
export function refuseTaken({
  plan,
  matches,
  existing,
}: {
  plan: ImportPlan
  matches: LedgerMatches
  existing: Existing
}): void {
  const all = matches.valid.toLocaleString('en')
  const left = (matches.valid - matches.doneEarlier.size).toLocaleString('en')
  for (const [run, { done, active }] of matches.held) {
    if (active.length > 0)
      throw new RowsTaken(
        `${active.length.toLocaleString('en')} of ${all} rows belong to the run ${run}, which has not finished with them (rows ${few(active)}). First let it end, with its own command if it was stopped, or resolve the rows it has parked.`,
      )
    if (done > 0 && plan.done === 'refuse')
      throw new RowsTaken(
        `${done.toLocaleString('en')} of ${all} rows were done by the run ${run}. To send the other ${left}, add --done skip.`,
      )
  }
  if (existing.ids.size === 0 || plan.existing !== 'refuse') return
  throw new RowsTaken(
    `${existing.ids.size.toLocaleString('en')} of ${all} rows already exist in the service (as ${few([...existing.ids.values()].flat())}). To skip them, add --existing skip; to create all rows anyway, --existing create.`,
  )
}

/** Rejects a file if it is not known which of its rows the service has. @throws {RowsTaken} */
export function refuseUnseen({ plan, existing }: { plan: ImportPlan; existing: Existing }): void {
  const [reason] = existing.reasons
  if (reason === undefined || plan.existing === 'create') return
  throw new RowsTaken(
    `It is not known which rows the service already has, so nothing was sent: its list could not be read completely (${reason}), and its filters do not find what the list shows. Import the file again later. To create all rows anyway, add --existing create.`,
  )
}

const mostNamed = 10
const few = (names: readonly (string | number)[]) =>
  names.length <= mostNamed ? names.join(', ') : `${names.slice(0, mostNamed).join(', ')} ...`
