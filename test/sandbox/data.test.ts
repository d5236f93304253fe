import { describe, expect, it } from 'vitest'
import { multiply } from '../../sandbox/data/values.ts'
import { parseTimestamp, toTimestamp } from '../../sandbox/data/times.ts'
import type { SandboxOptions } from '../../sandbox/options.ts'
import { start } from './client.ts'

const stored = async (options: SandboxOptions) => {
  const { sandbox } = await start(options)
  return (['customers', 'subscriptions', 'plans', 'retentions'] as const).map((resource) =>
    [...sandbox.control.records({ resource })].join('\n'),
  )
}

describe('the data', () => {
  it('is the same for the same seed and another for another', async () => {
    const [one, same, other] = [
      await stored({ seed: 7 }),
      await stored({ seed: 7 }),
      await stored({ seed: 8 }),
    ]
    for (const [place, text] of one.entries()) {
      expect(same[place] === text).toBe(true)
      expect(other[place] === text).toBe(false)
    }
  })

  it('holds what breaks readers', async () => {
    const [customers = '', subscriptions = '', plans = '', retentions = ''] = await stored({
      counts: { customers: 2000, plans: 500 },
    })
    const missing = [
      '"name":"=',
      '"name":"+',
      '"name":"-',
      '"name":"@',
      '"name":"\\t',
      '\\r\\n',
      '\\"',
      '🥖',
      ', ',
    ].filter((sign) => !customers.includes(sign))
    expect(missing).toEqual([])
    const absent = [
      '"country":null',
      '"country":{"id":"CL"',
      '"email":""',
      '"tax_id":null',
      '"segment":',
    ].filter((value) => !customers.includes(value))
    expect(absent).toEqual([])
    for (const text of [customers, plans, retentions])
      expect(text.includes('12345678901234567.89')).toBe(true)
    expect(/:\d+\.\d0[,}]/.test(retentions)).toBe(true)
    const rows = customers.split('\n').map((text) => JSON.parse(text))
    expect(rows.some((row) => !('website' in row))).toBe(true)
    expect(rows.some((row) => row.website === null)).toBe(true)
    expect(subscriptions.includes('"needs_attention_reason":"gateway_issue"')).toBe(true)
    expect(plans.includes('test_mode')).toBe(false)
  })

  it('has timestamps with and without microseconds, on both sides of the change of the clock', async () => {
    const [customers = ''] = await stored({ counts: { customers: 500 }, ties: { customers: { share: 0 } } })
    const created = customers.split('\n').map((text) => String(JSON.parse(text).created))
    expect(created.some((text) => /T\d\d:\d\d:\d\d-0[34]:00$/.test(text))).toBe(true)
    expect(created.some((text) => /\.\d{6}-03:00$/.test(text))).toBe(true)
    expect(created.some((text) => /\.\d{6}-04:00$/.test(text))).toBe(true)
    const instants = created.map((text) => parseTimestamp(text) ?? Number.NaN)
    expect(instants.every((at, place) => place === 0 || at > (instants[place - 1] ?? 0))).toBe(true)
  })

  it('has groups of ties of exactly the sizes asked for', async () => {
    const groups = [2, 70, 300]
    const [customers = ''] = await stored({
      counts: { customers: 1000 },
      ties: { customers: { share: 0, groups } },
    })
    const sizes = new Map<string, number>()
    for (const text of customers.split('\n')) {
      const { created } = JSON.parse(text)
      sizes.set(created, (sizes.get(created) ?? 0) + 1)
    }
    expect([...sizes.values()].filter((size) => size > 1)).toEqual(groups)
    await expect(start({ counts: { plans: 10 }, ties: { plans: { groups: [11] } } })).rejects.toThrow(
      /do not fit/,
    )
  })

  it('writes decimals as strings where the setting says so, and numbers otherwise', async () => {
    const { rows } = await start({ decimals: 'strings' })
    const [plan] = await rows('/plans/')
    expect(plan?.amount).toMatch(/^-?[\de.]+$/)
    const plain = await start()
    expect(typeof (await plain.rows('/plans/'))[0]?.amount).toBe('number')
  })
})

describe('times', () => {
  it('come back from their text to the microsecond', () => {
    expect(toTimestamp(1_602_778_575_356_289)).toBe('2020-10-15T13:16:15.356289-03:00')
    expect(toTimestamp(1_602_778_575_000_000)).toBe('2020-10-15T13:16:15-03:00')
    // Chile's clock goes back at 03:00 UTC on 2020-04-05: the same hour comes twice.
    expect(toTimestamp(1_586_055_599_000_001)).toBe('2020-04-04T23:59:59.000001-03:00')
    expect(toTimestamp(1_586_055_600_000_001)).toBe('2020-04-04T23:00:00.000001-04:00')
    for (let at = 1_577_836_800_000_000; at < 1_640_995_200_000_000; at += 86_400_123_457)
      expect(parseTimestamp(toTimestamp(at))).toBe(at)
    expect(parseTimestamp('yesterday')).toBeUndefined()
  })
})

describe('the product of two decimals', () => {
  it('is exact', () => {
    expect(multiply('12345678901234567.89', '2')).toBe('24691357802469135.78')
    expect(multiply('-0.10', '0.3')).toBe('-0.030')
    expect(multiply('1e3', '2')).toBeUndefined()
  })
})
