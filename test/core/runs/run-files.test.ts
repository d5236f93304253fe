import { appendFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  changeRunFiles,
  noteResolution,
  readDecisions,
  recordDecisions,
} from '../../../core/runs/run-files.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

test('what is recorded after a line that a crash has truncated is read', async () => {
  const folder = await temporaryFolder()
  const decision = { at: '', about: 'approval', by: 'Ana', why: 'looks right' } as const
  const found = { row: 1, claims: 1, closedAt: 5 }
  await recordDecisions(folder, [decision])
  await noteResolution(folder, { id: 'first', rows: [found] })
  for (const name of [changeRunFiles.decisions, changeRunFiles.resolutions])
    await appendFile(join(folder, name), '{"id":"second","by":"Ev')
  const canary = { ...decision, about: 'canary' } as const
  await recordDecisions(folder, [canary])
  await noteResolution(folder, { id: 'second', rows: [found] })
  expect(await readDecisions(folder)).toEqual([decision, canary])
  for (const id of ['first', 'second'])
    expect((await noteResolution(folder, { id, rows: [{ ...found, claims: 2 }] })).get(1)).toMatchObject(
      found,
    )
})
