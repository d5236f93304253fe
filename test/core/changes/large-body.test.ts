import { expect, test } from 'vitest'
import { maxBodyBytes } from '../../../core/changes/body.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { addonRows, startEngine, startSandbox } from './engine.ts'

test('a change is staged with a body of 64 KB, and refused with one sentence above it', async () => {
  const engine = await startEngine({ kind: changeKinds['create-addon'], sandbox: await startSandbox() })
  const [small, large] = addonRows(2)
  if (small === undefined || large === undefined) throw new Error('two rows')
  const empty = JSON.stringify({ ...small.body, description: '' }).length
  const sized = (bytes: number) => ({ description: 'é'.repeat(2).padEnd(bytes - empty - 2, 'x') })
  const fits = { ...small, body: { ...small.body, ...sized(maxBodyBytes) } }
  const exceeds = { ...large, body: { ...large.body, ...sized(maxBodyBytes + 1) } }
  await expect(engine.stage([fits, exceeds])).rejects.toMatchObject({ name: 'BodyTooLargeError' })
  await expect(engine.stage([exceeds])).rejects.toThrow(
    'row 2 makes a request of 65,537 bytes; at most 65,536 are sent.',
  )
  expect(await engine.rows()).toEqual([])
  expect(await engine.stage([fits])).toMatchObject({ staged: 1 })
})
