import { expect, test } from 'vitest'
import { begin, quick } from './world.ts'

test(
  'uses its rate, and never exceeds it by more than one request in any second',
  { tags: ['long'] },
  async () => {
    const rate = 40
    const { world, start } = await begin({ broken: 50 })
    const run = await start({ ...quick, requestsPerSecond: rate, verifyAfter: 0 })
    await run.result()
    const asked = world.sandbox.control
      .requests()
      .filter(({ url }) => !url.includes('page_size=1&') && !url.endsWith('page_size=1'))
    const at = asked.map(({ receivedAt }) => receivedAt)
    // A second as the sender sees it: on a busy machine, one request arrives up to 50 ms later than the next.
    const busiest = Math.max(
      ...at.map((from) => at.filter((time) => time >= from && time < from + 950).length),
    )
    expect(busiest).toBeLessThanOrEqual(rate + 1)
    const resumes = asked.filter(({ method }) => method === 'POST').map(({ receivedAt }) => receivedAt)
    const [first = 0, last = 0] = [resumes[10], resumes.at(-5)]
    const between = at.filter((time) => time >= first && time < last).length
    console.log({ rate, busiest, used: (1000 * between) / (last - first) / rate })
    expect((1000 * between) / (last - first)).toBeGreaterThan(0.9 * rate)
  },
)
