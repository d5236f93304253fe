import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { changeKinds } from '../../core/changes/kinds.ts'
import type { ImportPlan } from '../../core/imports/input.ts'
import { readRunNotes } from '../../core/imports/run-files.ts'
import { createStepFolder } from '../../core/runs/step-folder.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import { StoreAwayError } from '../../core/storage/store-errors.ts'
import { fixLedger } from '../../scripts/commands/restored.ts'
import { addonRows, startEngine, startSandbox, temporaryFolder, workspace } from '../core/changes/engine.ts'

test('restored can be repeated after the bucket was away: an import that the ledger forgot is reopened all the same', async () => {
  const run = 'import-1'
  const folder = await temporaryFolder()
  const sandbox = await startSandbox()
  const engine = await startEngine({ kind: changeKinds['create-addon'], sandbox, folder, run })
  await engine.stage(addonRows(2))
  const store = createFolderStore(await temporaryFolder())
  const path = join('imports', run)
  const step = createStepFolder({ dataDir: await temporaryFolder(), store })
  await step.fetchRun({ room: 'imports', run })
  const at = join(step.dataDir, path)
  await mkdir(at)
  const identity = { workspace, baseUrl: sandbox.url, mode: 'live', store: 'state' } as const
  const plan: Partial<ImportPlan> = {
    run,
    folder: path,
    identity,
    kind: 'addons',
    startedAt: '2026-01-01T00:00:00Z',
    dryRun: false,
    file: 'imports/input/hash/file/addons.csv',
    mapping: 'imports/input/hash/mapping.json',
    sendAgain: [],
    limits: {},
  }
  await writeFile(join(at, 'plan.json'), JSON.stringify(plan))
  await writeFile(join(at, 'staged.json'), JSON.stringify({ staged: 2 }))
  await writeFile(join(at, 'ended.json'), JSON.stringify({ how: 'finished', at: '2026-01-01T00:01:00Z' }))
  await writeFile(join(at, 'claims.log'), 'row claims at\n1 1 5\n2 1 5\n')
  await step.keep()
  const endOf = async () => {
    const reader = createStepFolder({ dataDir: await temporaryFolder(), store })
    await reader.fetchRun({ room: 'imports', run })
    return (await readRunNotes(join(reader.dataDir, path))).ended?.how
  }
  const fix = (files: FileStore) => fixLedger({ place: { folder }, everything: false, files })

  const away = { ...store, replace: () => Promise.reject(new StoreAwayError('503')) }
  await expect(fix(away)).rejects.toThrow(StoreAwayError)
  expect((await engine.rows()).map(({ state }) => state)).toEqual(['unknown', 'unknown'])
  expect(await endOf()).toBe('finished')

  expect(await fix(store)).toMatchObject([{ run, resume: expect.stringContaining('import addons') }])
  expect(await endOf()).toBe('stopped')
  expect(await fix(store)).toEqual([])
})
