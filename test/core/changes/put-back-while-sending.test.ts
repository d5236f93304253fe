import { DatabaseSync } from 'node:sqlite'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { ChangeKind } from '../../../core/changes/change-kind.ts'
import { changeKinds } from '../../../core/changes/kinds.ts'
import { OldLedgerError } from '../../../core/state/errors.ts'
import { addonRows, copies, startEngine, startSandbox, temporaryFolder } from './engine.ts'

const addon = changeKinds['create-addon']
const count = 4

/** A run whose ledger forgets, after a number of answers, what it knows of its first row: a failover to a replica that lags. */
async function startFailingOver(after: number) {
  const [sandbox, folder] = [await startSandbox(), await temporaryFolder()]
  let answered = 0
  const failsOver: ChangeKind = {
    ...addon,
    async send(request) {
      const stored = await addon.send(request)
      answered += 1
      if (answered === after) putBack(folder)
      return stored
    },
  }
  const engine = await startEngine({ kind: failsOver, sandbox, folder, limits: { concurrency: 1 } })
  await engine.stage(addonRows(count))
  return { ...engine, sandbox }
}

function putBack(folder: string) {
  const db = new DatabaseSync(join(folder, 'state.db'))
  db.exec(`update changes set state = 'staged', claims = 0, sends = 0, outcome = null, answer_id = null, answer = null,
    answered_at = null, closed_at = null, sent_at = null where row = 1`)
  db.close()
}

test('a row that the ledger has forgotten while its run is sending is not sent again, now or by the next attempt', async () => {
  const { sandbox, send } = await startFailingOver(count)
  await expect(send()).rejects.toBeInstanceOf(OldLedgerError)
  await expect(send()).rejects.toBeInstanceOf(OldLedgerError)
  expect([...copies(sandbox, 'addons', 'name').values()]).toEqual(Array.from({ length: count }, () => 1))
})

test('a row that the ledger has forgotten since an earlier attempt is not sent again either', async () => {
  const { sandbox, send } = await startFailingOver(2)
  await send({ rows: [1] })
  await send({ rows: [2] }).catch(() => undefined)
  await expect(send()).rejects.toBeInstanceOf(OldLedgerError)
  expect(copies(sandbox, 'addons', 'name').get('Addon 1')).toBe(1)
})
