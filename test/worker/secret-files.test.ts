import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { describeSettings, listSettings } from '../../worker/settings/variables.ts'
import { readSettings } from '../../worker/settings/settings.ts'

let cwd: string
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'settings-'))
})
afterEach(() => rmSync(cwd, { recursive: true }))

const enough = { BILLING_BASE_URL: 'https://x.test', BILLING_TOKEN: 't0ken', BILLING_WORKSPACE: 'acc_1' }
const read = (env: Record<string, string>) => readSettings({ env: { ...enough, ...env }, cwd })

describe('a secret in a file of its own', () => {
  test('is taken from where its variable names it, and never shown', () => {
    writeFileSync(join(cwd, 'warehouse'), 'postgres://u:p4ss@db/x\n')
    writeFileSync(join(cwd, '.env'), 'WAREHOUSE_URL_FILE=warehouse\n')
    expect(read({}).warehouseUrl).toBe('postgres://u:p4ss@db/x')
    const listed = listSettings({ env: enough, cwd }).find(({ name }) => name === 'WAREHOUSE_URL')
    expect(listed).toMatchObject({ value: 'not shown', from: join(cwd, '.env') })
    expect(describeSettings()).toContain('`WAREHOUSE_URL_FILE`')
  })

  test('is judged as the variable is', () => {
    writeFileSync(join(cwd, 'warehouse'), 'mysql://u:p4ss@db/x')
    expect(() => read({ WAREHOUSE_URL_FILE: 'warehouse' })).toThrow(
      `WAREHOUSE_URL (not shown) in ${join(cwd, 'warehouse')} is not a postgres://`,
    )
  })

  test('is refused where it is empty, missing, or given twice', () => {
    writeFileSync(join(cwd, 'empty'), '\n')
    expect(() => read({ CONNECTOR_HASH_KEY_FILE: 'empty' })).toThrow('is empty; put the value in it')
    expect(() => read({ CONNECTOR_HASH_KEY_FILE: 'nowhere' })).toThrow('cannot be read; put the value in it')
    expect(() => read({ CONNECTOR_HASH_KEY_FILE: 'empty', CONNECTOR_HASH_KEY: 'k' })).toThrow(
      'CONNECTOR_HASH_KEY and CONNECTOR_HASH_KEY_FILE are both set',
    )
  })
})
