import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { ChangeKindName } from '../../../core/changes/change-kind.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import type { ChangeToStage } from '../../../core/changes/staged-changes.ts'
import type { Sandbox } from '../../../sandbox/sandbox.ts'
import type { LedgerRow } from '../../../core/state/ledger/row.ts'
import { openState } from '../../../core/state/open.ts'
import {
  addonRows,
  copies,
  retentionRows,
  stageChanges,
  startSandbox,
  workspace,
} from '../../core/changes/engine.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'

const seed = 20_261_121
const probe = fileURLToPath(new URL('probes/sender-process.ts', import.meta.url))

/** mulberry32: the same kills for the same seed. */
function createRandom(state: number) {
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let value = Math.imul(state ^ (state >>> 15), 1 | state)
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Runs the sender, killing it at random moments, and gives the ledger as it stands at the end. */
async function sendUnderFire({
  name,
  sandbox,
  changes,
  kills,
}: {
  name: ChangeKindName
  sandbox: Sandbox
  changes: readonly ChangeToStage[]
  kills: number
}): Promise<LedgerRow[]> {
  const folder = await temporaryFolder()
  const state = await openState({ folder })
  await stageChanges({
    ledger: state.ledger,
    run: 'run-1',
    kind: changeKinds[name],
    changes,
  })
  await state.close()
  const random = createRandom(seed)
  for (let killed = 0; ;) {
    const child = spawn(process.execPath, [probe, folder, sandbox.url, sandbox.token, workspace, name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const exited = once(child, 'exit')
    await once(child.stdout, 'data')
    const timer = killed < kills ? setTimeout(() => child.kill('SIGKILL'), 5 + random() * 120) : undefined
    const [code] = (await exited) as [number | null]
    clearTimeout(timer)
    if (code === 0) break
    expect(code).toBeNull()
    killed += 1
  }
  const after = await openState({ folder })
  const rows: LedgerRow[] = []
  for await (const row of after.ledger.rows({ run: 'run-1' })) rows.push(row)
  await after.close()
  return rows
}

/** A dozen starts of a process, on a machine that may have other work. */
const slow = { timeout: 240_000, tags: ['long'] }

const faults = (on: string) =>
  [
    { kind: 'latency', ms: 4, jitterMs: 8 },
    { kind: 'latency', ms: 2, jitterMs: 6, where: 'after', on },
    { kind: 'reset', effect: 'done', rate: 0.05, on },
    { kind: 'reset', effect: 'none', rate: 0.05, on },
    { kind: 'error', status: 502, html: true, effect: 'done', rate: 0.03, on },
  ] as const

test(
  `retentions are made exactly once each, however often the sender is killed (seed ${seed})`,
  slow,
  async () => {
    const sandbox = await startSandbox({ seed, faults: faults('POST /retentions/') })
    const changes = retentionRows(150)
    const rows = await sendUnderFire({ name: 'create-retention', sandbox, changes, kills: 8 })
    const made = copies(sandbox, 'retentions', 'number')
    const parked = rows.filter(({ state }) => state === 'parked').map(({ row }) => row)
    // After three lost requests in a row a person decides; with these faults that is far less than one in a hundred.
    expect(parked.length).toBeLessThanOrEqual(3)
    for (const { row, state } of rows) {
      if (state === 'parked') expect(made.get(String(row)) ?? 0).toBeLessThanOrEqual(1)
      else expect({ row, state, copies: made.get(String(row)) }).toEqual({ row, state: 'done', copies: 1 })
    }
    expect(rows.some(({ outcome }) => outcome === 'found')).toBe(true)
  },
)

test(`addons are never made twice, and each that is done is there (seed ${seed})`, slow, async () => {
  const sandbox = await startSandbox({ seed, faults: faults('POST /addons/') })
  const rows = await sendUnderFire({ name: 'create-addon', sandbox, changes: addonRows(120), kills: 6 })
  const made = copies(sandbox, 'addons', 'name')
  for (const { row, state } of rows) {
    const there = made.get(`Addon ${row}`) ?? 0
    if (state === 'done') expect({ row, there }).toEqual({ row, there: 1 })
    else expect({ row, state, atMostOne: there <= 1 }).toEqual({ row, state: 'parked', atMostOne: true })
  }
  expect(rows.filter(({ state }) => state === 'parked').length).toBeGreaterThan(0)
})
