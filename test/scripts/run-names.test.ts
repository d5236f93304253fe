import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { uploadImport } from '../../scripts/runs/import.ts'
import { exportRequest, fetchRequest, recoveryRequest } from '../../scripts/runs/jobs.ts'
import { readSettings, type Settings } from '../../worker/settings/settings.ts'
import { temporaryFolder } from '../core/state/temporary-folder.ts'

const imported = async (settings: Settings, { dryRun = false } = {}) => {
  const file = join(settings.dataDir, 'rows.csv')
  await writeFile(file, 'name,price,quantity\nOne,1.00,1\n')
  const input = { kind: 'addons', ...(dryRun && { dryRun }) } as const
  const uploaded = await uploadImport({ settings, file, mapping: {}, input })
  await uploaded.prepared[Symbol.asyncDispose]()
  return uploaded.run
}

const jobs: [string, (settings: Settings) => string | Promise<string>][] = [
  ['an export', (settings) => exportRequest({ settings, input: {} }).workflowId],
  [
    'a fetch',
    (settings) => fetchRequest({ settings, input: { documents: 'creditnotes', ids: ['1'] } }).workflowId,
  ],
  ['a recovery', (settings) => recoveryRequest({ settings, input: {} }).workflowId],
  ['an import', (settings) => imported(settings)],
]

const settingsOf = (dataDir: string, more: object = {}) =>
  readSettings({
    env: {
      BILLING_BASE_URL: 'http://127.0.0.1:1/',
      BILLING_TOKEN: 'token',
      BILLING_WORKSPACE: 'acc_1',
      CONNECTOR_DATA_DIR: dataDir,
      ...more,
    },
    cwd: dataDir,
  })

test.for(jobs)('the name of %s is another in another workspace, and in test mode', async ([, nameOf]) => {
  const dataDir = await temporaryFolder()
  const settings = (more?: object) => settingsOf(dataDir, more)
  const own = await nameOf(settings())
  expect(await nameOf(settings())).toBe(own)
  expect(await nameOf(settings({ BILLING_WORKSPACE: 'acc_2' }))).not.toBe(own)
  expect(await nameOf(settings({ BILLING_TEST_MODE: 'true' }))).not.toBe(own)
})

test('a dry run of an import is named by its file and the second in UTC', async () => {
  const settings = settingsOf(await temporaryFolder())
  const before = Date.now()
  const run = await imported(settings, { dryRun: true })
  const at = run.replace(/^dry-run-addons-rows-(....)(..)(..)-(..)(..)(..)$/, '$1-$2-$3T$4:$5:$6Z')
  expect(Date.parse(at)).toBeGreaterThan(before - 1_000)
  expect(Date.parse(at)).toBeLessThanOrEqual(Date.now())
})
