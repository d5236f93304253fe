import { once } from 'node:events'
import { describe, expect, test } from 'vitest'
import { killGroup, pagesRead, quiet, startConnector } from './killed-process.ts'
import { createWorld } from './world.ts'

describe('an export whose processes are killed', () => {
  test(
    'resumes under the same command after a SIGKILL of everything under --local',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ ...quiet, faults: [{ kind: 'latency', ms: 1000 }] })
      const words = ['export', 'customers', '--local', '--json']
      const local = { TEMPORAL_ADDRESS: '' }
      const first = startConnector(world, words, local)
      await pagesRead(world, 45)
      killGroup(first)
      await once(first, 'exit')
      const asked = world.sandbox.control.counters().requests
      const second = startConnector(world, words, local)
      second.stderr?.resume()
      let out = ''
      second.stdout?.on('data', (data) => (out += String(data)))
      const [code] = await once(second, 'close')
      expect(code).toBe(0)
      const { exports } = JSON.parse(out) as { exports: { verdict: string; records: number }[] }
      expect(exports).toMatchObject([{ verdict: 'proven', records: 6000 }])
      // It went on where the first was, at most 5 s behind, instead of from the start.
      expect(world.sandbox.control.counters().requests - asked).toBeLessThan(60)
    },
  )
})
