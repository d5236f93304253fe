import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ImportPlan } from '../../../core/imports/input.ts'
import { describeSentRows } from '../../../core/imports/sent-rows.ts'
import { createRunNotes } from '../../../core/runs/run-notes.ts'
import type { Notes } from '../../../core/state/notes.ts'
import type { Ledger } from '../../../core/state/ledger/ledger.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const sheet = [
  'RUT;Folio;Fecha;Glosa;Monto bruto',
  '76.1-K;201;05-03-2026;Honorarios;1.500,10',
  '76.1-K;202;06-03-2026;Arriendo;900,00',
  '',
].join('\n')

const mapping = {
  columns: {
    RUT: 'supplier',
    Folio: 'number',
    Fecha: 'date',
    Glosa: 'lines.1.name',
    'Monto bruto': 'lines.1.amount',
  },
  set: { document: '7' },
  locale: 'es-CL',
}

const body = {
  supplier: '76.1-K',
  document: 7,
  number: 201,
  date: '2026-03-05',
  lines: [{ name: 'Honorarios', amount: 1500.1 }],
}

async function describe(answer: string | null, state = 'done') {
  const dataDir = await temporaryFolder()
  const folder = 'imports/run'
  await mkdir(join(dataDir, folder), { recursive: true })
  await writeFile(join(dataDir, folder, 'rows.csv'), sheet)
  await writeFile(join(dataDir, folder, 'mapping.json'), JSON.stringify(mapping))
  const rows = [
    { row: 2, state, outcome: null, sentAt: 1, body: JSON.stringify(body), answer, error: null },
    { row: 3, state: 'staged', outcome: null, sentAt: null, body: '{}', answer: null, error: null },
  ]
  const ledger = {
    rows: async function* () {
      yield* rows
    },
  } as unknown as Ledger
  const notes = createRunNotes({ notes: { of: async () => [] } as unknown as Notes })
  const plan = {
    run: 'run',
    kind: 'retentions',
    folder,
    file: join(folder, 'rows.csv'),
    mapping: join(folder, 'mapping.json'),
  } as unknown as ImportPlan
  return await describeSentRows({ ledger, notes, plan, dataDir, most: 10 })
}

test('a row that was sent is shown as its sheet has it, with only what the service changed or added marked', async () => {
  const answer = {
    ...body,
    id: 'ret_9',
    date: '2026-03-06',
    lines: [{ id: 'line_1', name: 'Honorarios', amount: 1500.2 }],
    test_mode: false,
    customer: null,
  }
  expect((await describe(JSON.stringify(answer))).split('\n')).toEqual([
    'Row 2: done',
    '  RUT          76.1-K',
    '  Folio        201',
    '* Fecha        05-03-2026  stored as 06-03-2026',
    '  Glosa        Honorarios',
    '* Monto bruto  1.500,10  stored as 1500,2',
    '+ id           ret_9',
    '+ test_mode    false',
  ])
})

test('a value that no column of the sheet holds is named as its field, and many added fields are counted', async () => {
  const added = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`extra_${at}`, at]))
  const lines = (await describe(JSON.stringify({ ...body, document: 8, ...added }))).split('\n')
  expect(lines).toContain('* document     7  stored as 8')
  expect(lines.filter((line) => line.startsWith('+'))).toHaveLength(5)
  expect(lines.at(-1)).toBe('  and 3 more fields of the service')
})

test('a row without an answer shows its cells alone', async () => {
  expect((await describe(null, 'unknown')).split('\n').slice(0, 2)).toEqual([
    'Row 2: unknown',
    '  RUT          76.1-K',
  ])
})
