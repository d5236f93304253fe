import { expect, test } from 'vitest'
import { Tally } from '../../chaos/tally.ts'
import { playWithTemporal } from '../../chaos/histories/temporal.ts'

test(
  'an import of addons whose command is killed, and whose ledger and Temporal are restored to one moment, reports the truth and sends no row twice (seed 7)',
  { tags: ['long'] },
  async () => {
    const tally = new Tally()
    const blow = 'state.db and Temporal restored'
    expect(await playWithTemporal({ seed: 7, tally, job: 'addons', blows: [blow] })).toEqual([])
    expect(Object.fromEntries(tally.counts)).toMatchObject({ [`real ${blow}`]: 1 })
  },
)
