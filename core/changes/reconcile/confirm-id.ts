import type { Billing } from '../../billing/client.ts'
import { outwardMessage } from '../../runs/outward-message.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { parseBody } from '../body.ts'
import type { ChangeKind } from '../change-kind.ts'
import { textOf } from '../compare-fields.ts'
import { WrongIdError } from '../errors.ts'
import { targetOf } from '../target.ts'

/** Whether the service itself shows the record that a person names. */
export type Confirmation = { confirmed: true } | { confirmed: false; reason: string }

/** Letters, digits, `_` and `-`, as in all ids of the service. */
const idForm = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/

/**
 * Checks the id that a person gives for a parked change: its form, the record that the change is about, and, if the
 * service can be asked, the service.
 * @throws {WrongIdError}
 */
export async function confirmId({
  kind,
  row,
  id,
  billing,
  signal,
}: {
  kind: ChangeKind
  row: LedgerRow
  id: string
  billing: Billing
  signal: AbortSignal | undefined
}): Promise<Confirmation> {
  const wrong = (reason: string) => new WrongIdError({ row: row.row, id, reason })
  if (!idForm.test(id)) throw wrong('ids consist of letters, digits, _ and -')
  const body = parseBody(row)
  const target = targetOf(body).id
  if (target !== '' && target !== id) throw wrong(`the row is about ${target}`)
  if (target !== '') return { confirmed: false, reason: 'the service does not show who changed a record' }
  if (kind.hasNumericIds === true && !/^\d+$/.test(id)) throw wrong('ids of these records are numbers')
  if (kind.findUnderKey === undefined)
    return { confirmed: false, reason: 'the service has no list of these records' }
  try {
    const { records, honoured } = await kind.findUnderKey({ billing, body, signal })
    const ids = records.map((record) => textOf(record['id']))
    if (ids.includes(id)) return { confirmed: true }
    if (!honoured) return { confirmed: false, reason: 'the service ignored the filters of the lookup' }
    if (ids.length === 0 && (await kind.findListed?.({ billing, signal }))?.found !== true)
      return { confirmed: false, reason: 'the lookup does not find a record that the list shows, either' }
    throw wrong(
      `the service has ${ids.length === 0 ? 'no record' : ids.join(', ')} under the key of this row`,
    )
  } catch (error) {
    if (error instanceof WrongIdError || signal?.aborted === true || !(error instanceof Error)) throw error
    return { confirmed: false, reason: outwardMessage(error) }
  }
}
