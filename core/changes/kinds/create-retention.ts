import type { Body } from '../../billing/client.ts'
import { retention, retentions } from '../../billing/resources/tax-documents.ts'
import type { ChangeKind, LookupContext, LookupRequest, LookupResult, Traits } from '../change-kind.ts'
import { compareDecimals, differencesOf, textOf } from '../compare-fields.ts'
import { isRecord, type SourceRecord } from '../../reading/record.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { findRecords, type FoundRecords } from './find-records.ts'

/**
 * A withholding-tax document: losing one and creating one twice are both offences. Supplier, document type and number
 * identify it, and the list can be filtered by all three.
 */
export const createRetention: ChangeKind = {
  name: 'create-retention',
  keyOf: retentionKey,
  repeats: 'never',
  answered: 'created',
  send: ({ billing, body, options }) => billing.createRetention(body, options),
  whenUnknown: () => 'lookUp',
  lookUp,
  findUnderKey: findRetentions,
  findListed,
  traitsOf,
}

function traitsOf(body: Body): Traits {
  const lines: Body[] = Array.isArray(body['lines']) ? body['lines'] : []
  const amounts = lines.map(({ amount }) => textOf(amount)).toSorted(compareDecimals)
  // A row that lacks an amount that others have is not like them.
  const fields = new Set([...Object.keys(body), ...lines.flatMap((line) => Object.keys(line))])
  return {
    signature: [textOf(body['document']), ...[...fields].toSorted()].join(' '),
    lines: lines.length,
    amount: textOf(body['total'] ?? body['amount'] ?? amounts.at(-1)),
  }
}

/** The same key for a body and for the record created from it: `007` and `7` are the same number. */
export function retentionKey(body: Body): string {
  return JSON.stringify([
    textOf(body['supplier']),
    integerText(body['document']),
    integerText(body['number']),
  ])
}

const integerText = (value: unknown) => {
  const text = textOf(value).trim()
  return /^-?\d+$/.test(text) ? String(BigInt(text)) : text
}

/** All records that the service has under the supplier, document and number of a body. */
export function findRetentions({ body, ...options }: LookupContext): Promise<FoundRecords> {
  return findUnderRetentionKey({ ...options, key: retentionKey(body) })
}

export function findUnderRetentionKey({
  billing,
  key,
  signal,
}: Omit<LookupContext, 'body'> & { key: string }): Promise<FoundRecords> {
  const [supplier, document, number] = JSON.parse(key) as [string, string, string]
  const like = looseKey(key)
  return findRecords({
    billing,
    resource: retentions,
    filters: { supplier, document, number },
    // A service that answers with another spelling takes the two for the same supplier.
    carries: (record) => looseKey(retentionKey(record)) === like,
    signal,
  })
}

/** The same text for suppliers that differ only in case, in spaces around them or in leading zeros. */
export function looseKey(key: string): string {
  const [supplier, ...others] = JSON.parse(key) as [string, string, string]
  const spelling = supplier
    .trim()
    .toLowerCase()
    .replace(/^0+(?=.)/, '')
  return JSON.stringify([spelling, ...others])
}

async function lookUp({ billing, body, before, others, signal }: LookupRequest): Promise<LookupResult> {
  if (others.includes(null))
    return {
      result: 'unclear',
      outcome: 'indistinct',
      message:
        'an earlier change with the same supplier, document and number was answered without an id, so the records can’t be told apart',
    }
  const { records, honoured } = await findRetentions({ billing, body, signal })
  const foreign = new Set<string | null>([...idsBefore(before), ...others])
  const fresh = records.filter((record) => !foreign.has(textOf(record['id'])))
  const same = fresh.filter((record) => hasContents({ record, body }))
  const ids = same.map((record) => textOf(record['id'])).toSorted(compareDecimals)
  const [id, ...otherIds] = ids
  if (id !== undefined && otherIds.length === 0) return { result: 'done', id, outcome: 'found' }
  if (id !== undefined)
    return {
      result: 'done',
      id,
      otherIds,
      outcome: 'doubled',
      message: `the service has it as ${ids.join(' and ')}`,
    }
  if (fresh.length > 0)
    return {
      result: 'unclear',
      outcome: 'otherContents',
      message: `the service has ${fresh.map((record) => textOf(record['id'])).join(', ')} under this supplier, document and number, but with other contents`,
    }
  if (!honoured)
    return {
      result: 'unclear',
      outcome: 'filterIgnored',
      message:
        'the list of retentions returned records of another supplier, document or number than requested, or fewer than it counts',
    }
  return { result: 'absent' }
}

async function findListed({
  billing,
  signal,
}: Pick<LookupContext, 'billing' | 'signal'>): Promise<{ id: string; found: boolean } | undefined> {
  const query = { resource: retentions, page: 1, pageSize: 1, ordering: '-created' }
  const [record] = (await billing.list({ ...query, ...(signal && { signal }) })).records.filter(isRecord)
  if (record === undefined) return undefined
  return { id: textOf(record['id']), found: await isFound({ billing, record, signal }) }
}

/** The positive control: whether a record that the list shows is found by its supplier, document and number. */
export async function isFound({
  record,
  ...context
}: Omit<LookupContext, 'body'> & { record: SourceRecord }): Promise<boolean> {
  const { records, honoured } = await findRetentions({ ...context, body: record })
  return honoured && records.some(({ id }) => textOf(id) === textOf(record['id']))
}

export const hasContents = ({ record, body }: { record: unknown; body: Body }) =>
  differencesOf({ schema: retention, sent: body, stored: record }).length === 0

/** The ids that the service had under this key when the change was staged. `before`: the ledger's column. */
export function idsBefore(before: string | null): string[] {
  const facts: unknown = before === null ? undefined : JSON.parse(before)
  if (typeof facts !== 'object' || facts === null || !('ids' in facts) || !Array.isArray(facts.ids)) return []
  return facts.ids.map(String)
}

/** The ids that changes of the ledger account for: their own, and those that the service had before them. */
export const idsKnownTo = (rows: readonly Pick<LedgerRow, 'answerId' | 'before'>[]): string[] =>
  rows.flatMap(({ answerId, before }) => [...(answerId === null ? [] : [answerId]), ...idsBefore(before)])
