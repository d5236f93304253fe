import type { Body, Returned } from '../../billing/client.ts'
import type { ChangeKind } from '../change-kind.ts'
import { differencesOf, textOf } from '../compare-fields.ts'

/** How the answer differs from what was sent, for the report; fields that the answer omits are unknown. */
export function changedIn({
  kind,
  stored,
  body,
}: {
  kind: ChangeKind
  stored: Returned | undefined
  body: Body
}): string | null {
  if (kind.stores === undefined || stored === undefined) return null
  const sent = Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'id' && name in stored))
  const differences = differencesOf({ schema: kind.stores, sent, stored })
  const message = differences.map(
    (difference) =>
      `${difference.field} was sent as ${difference.sent} and is stored as ${difference.stored}`,
  )
  return message.length === 0 ? null : message.join('; ')
}

/** The id in the service's answer; null if the answer is about another record than requested, or about none. */
export function idIn({ stored, body }: { stored: Returned | undefined; body: Body }): string | null {
  const [returnedId, requestedId] = [textOf(stored?.['id']), textOf(body['id'])]
  if (stored === undefined) return requestedId || null
  return requestedId !== '' && returnedId !== requestedId ? null : returnedId || null
}
