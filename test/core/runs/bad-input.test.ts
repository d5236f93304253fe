import { expect, test } from 'vitest'
import { checkExport, checkFetch, exportInput, fetchInput } from '../../../core/exports/input.ts'
import { parseImportInput } from '../../../core/imports/input.ts'
import { parseRecoveryInput } from '../../../core/recoveries/input.ts'
import { outwardMessage } from '../../../core/runs/errors.ts'
import { parseInput } from '../../../core/runs/inputs.ts'

const parsers = {
  export: (input: unknown) => checkExport(parseInput({ schema: exportInput, input, taker: 'an export' })),
  fetch: (input: unknown) => checkFetch(parseInput({ schema: fetchInput, input, taker: 'a fetch' })),
  import: parseImportInput,
  recovery: parseRecoveryInput,
}

const exportFields = 'Its fields are resources, to,'
const credit = { documents: 'creditnotes' }
const fetchFields = 'Its fields are documents, ids, file, idColumn,'
const good = { kind: 'retentions', file: 'inbox/rows.csv' }

test.each<[job: keyof typeof parsers, about: string, input: unknown, ...names: string[]]>([
  ['export', 'an array', [], 'input: takes an object with fields, not a list', exportFields],
  ['export', 'a text', 'customers', 'input: takes an object with fields, not a text', exportFields],
  ['export', 'a number', 7, 'input: takes an object with fields, not a number', exportFields],
  ['export', 'an unknown resource', { resources: ['customer'] }, 'resources.0', '"subscriptions"'],
  ['export', 'a text for a list', { resources: 'customers' }, 'resources: takes a list, not a text'],
  ['export', 'no resource at all', { resources: [] }, 'resources: ', exportFields],
  ['export', 'an unknown destination', { to: ['csvs'] }, 'to.0', '"csv"'],
  ['export', 'a text for a number', { maxPages: '4' }, 'maxPages: takes a number, not a text'],
  ['export', 'a rate of nothing', { requestsPerSecond: 0 }, 'requestsPerSecond: ', exportFields],
  ['export', 'a filter that is not a text', { filters: { status: 1 } }, 'filters.status: ', exportFields],
  [
    'export',
    'a dialect without its destination',
    { to: ['parquet'], forExcel: true },
    'forExcel: has no effect on parquet. Leave it out, or publish to csv.',
  ],
  ['export', 'a schema without PostgreSQL', { schema: 'mine' }, 'schema: has no effect on csv.'],
  ['export', 'a limit of deletes without a warehouse', { maxDeletes: 0 }, 'publish to duckdb or postgres.'],
  ['fetch', 'a schema without PostgreSQL', { ...credit, to: ['duckdb'], schema: 'mine' }, 'schema: '],
  ['fetch', 'an array', [], fetchFields],
  ['fetch', 'a text', '501', fetchFields],
  ['fetch', 'unknown documents', { documents: 'invoices', ids: ['1'] }, '"creditnotes"'],
  ['fetch', 'an unknown field', { ...credit, id: '501' }, fetchFields],
  ['fetch', 'half an id', { ...credit, ids: [501.5] }, fetchFields],
  ['fetch', 'a rate of nothing', { ...credit, ids: ['501'], requestsPerSecond: 0 }, 'requestsPerSecond: '],
  ['import', 'a text', 'retentions', 'takes an object with fields', 'Its fields are'],
  ['import', 'an unknown kind', { ...good, kind: 'retention' }, 'kind', '"retentions"'],
  ['import', 'a text for a number', { ...good, canary: '3' }, 'canary: takes a number, not a text'],
  [
    'recovery',
    'a list',
    ['gateway_issue'],
    'one object, such as {"reasons": ["gateway_issue"]}, and got a list',
  ],
  [
    'recovery',
    'unknown fields',
    { reason: 'x', pages: 3 },
    'input: has no field "reason", "pages"',
    'Its fields are reasons',
  ],
  ['recovery', 'maxPages 0', { maxPages: 0 }, 'maxPages: ', '>=1'],
  ['recovery', 'maxChanges 0', { maxChanges: 0 }, 'maxChanges: ', '>=1'],
  [
    'recovery',
    'a date that does not exist',
    { nextBilling: '2027-02-30' },
    'nextBilling: ',
    'does not exist',
  ],
  [
    'recovery',
    'a date in another form',
    { nextBilling: '30/12/2027' },
    '"30/12/2027" is not a date',
    '2026-12-01',
  ],
  ['recovery', 'misspelt reasons', { reasons: ['gatway_issue', 'x'] }, 'did you mean gateway_issue?'],
  ['recovery', 'no reasons', { reasons: [] }, 'reasons: ', '>=1'],
  ['recovery', 'what is not a duration', { olderThan: '2 weeks' }, '"2 weeks" is not a duration', '"2h"'],
  [
    'recovery',
    'a duration without end',
    { approvalWait: '100000000d' },
    '"100000000d" is longer than 366 days',
  ],
  ['recovery', 'a text for a number', { maxPages: '5' }, 'maxPages: takes a number, not a text'],
])('the input of a run is refused with one sentence: %s, %s', (job, _, input, ...names) => {
  let failure: unknown
  try {
    parsers[job](input)
  } catch (error) {
    failure = error
  }
  expect(failure).toMatchObject({ name: 'InvalidInput' })
  const sentence = outwardMessage(failure as Error)
  for (const name of names) expect(sentence).toContain(name)
  expect(sentence).toMatch(/^[^\n]+[.?]$/)
})
