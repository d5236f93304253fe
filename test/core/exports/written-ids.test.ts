import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openIdSet } from '../../../core/exports/parts/written-ids.ts'
import { customers } from '../../../core/billing/resources/customers.ts'
import { createRowEncoder } from '../../../core/tables/encoder/row-encoder.ts'

const ids = ['plain', 'a,b', 'say "hi"', 'two\nlines', 'carriage\rreturn', '007', "' quoted '"]

async function write(text: string) {
  const folder = await mkdtemp(join(tmpdir(), 'id-set-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const path = join(folder, 'customers.a.part')
  await writeFile(path, `${text}torn`)
  return { folder, part: { table: 'customers', path, bytes: Buffer.byteLength(text), rows: ids.length } }
}

test.each([
  ['as they are', {}],
  ['hashed', { hash: ['customers.id'], hashKey: 'key' }],
])('ids that were written %s are known again, whatever is in them', async (_how, privacy) => {
  const encoder = createRowEncoder({ resource: customers, privacy })
  const { folder, part } = await write(encoder.encode(ids.map((id) => ({ id }))).tables[0]!.text)
  const set = await openIdSet({
    folder,
    name: 'a',
    parts: [part],
    rejected: [],
    toWritten: encoder.toWrittenId,
  })
  onTestFinished(() => set.close())
  expect(set.add([...ids, 'another', 'another'])).toEqual([...ids.map(() => false), true, false])
})

test('a part that is gone or ends early is said so', async () => {
  const { folder, part } = await write('a\n')
  const open = (options: { path?: string; bytes?: number }) =>
    openIdSet({ folder, name: 'a', parts: [{ ...part, ...options }], rejected: [], toWritten: (id) => id })
  await expect(open({ path: join(folder, 'gone') })).rejects.toThrow(/can't be read/)
  await expect(open({ bytes: 99 })).rejects.toThrow(/ends after/)
})

test('a rejected line that was written is known again, apart from any id', async () => {
  const text = '{"reason":"it has no id","record":{"name":"línea\\u2028"}}\n'
  const { folder, part } = await write(text)
  const set = await openIdSet({ folder, name: 'a', parts: [], rejected: [part], toWritten: (id) => id })
  onTestFinished(() => set.close())
  const line = text.trimEnd()
  expect(set.addLines([line, 'another', 'another'])).toEqual([false, true, false])
  expect(set.add([line, 'another'])).toEqual([true, true])
})

test('a worker that has nothing of a read yet builds its set all the same', async () => {
  const { folder, part } = await write('a\n')
  const set = await openIdSet({
    folder: join(folder, 'nothing yet'),
    name: 'a',
    parts: [part],
    rejected: [],
    toWritten: (id) => id,
  })
  onTestFinished(() => set.close())
  expect(set.add(['a', 'b'])).toEqual([false, true])
})
