import { expect, test } from 'vitest'
import { describePromises, describeRuns } from '../../docs/evidence.ts'
import type { ChaosRecord } from '../chaos/record.ts'

const file = 'test/docs/evidence.test.ts'
const title = 'a promise shows its tests and what the newest run of each part of its command found'
const record = (date: string, found: number): ChaosRecord => ({
  command: 'npm run chaos -- --only ranges',
  date: `${date}T01:02:03.000Z`,
  commit: 'abc1234',
  machine: '2 cores',
  parts: [
    {
      part: 'ranges',
      firstSeed: 7,
      rounds: 1_500,
      seconds: 60,
      found,
      counts: { 'ranges: read proven': 1_400 },
      times: { 'ranges: to read': { number: 3, medianMs: 1_240, longestMs: 5_000 } },
    },
  ],
})
const describe = (tests: Record<string, string[]>, harder: string[], records: ChaosRecord[] = []) =>
  describePromises({ Heading: [{ promise: 'It holds.', tests, harder }] }, records)

test('a promise shows its tests and what the newest run of each part of its command found', () => {
  const command = 'npm run chaos -- --only ranges,fleet'
  expect(describe({ [file]: [title] }, [command], [record('2026-03-02', 0), record('2026-03-01', 1)])).toBe(
    `## Heading\n\n**It holds.**\n\n- \`${file}\`: ${title}\n` +
      `- Harder: \`${command}\`. Last: ranges 2026-03-02 (abc1234), 1,500 rounds, found nothing`,
  )
})

test('a run shows where and when it was, what each part did and what it found', () => {
  expect(describeRuns([record('2026-03-02', 2)])).toBe(
    '`npm run chaos -- --only ranges`, 2026-03-02 01:02 UTC, commit abc1234, 2 cores:\n\n' +
      '- **ranges**: 1,500 rounds in 60 s, from seed 7; found **2**. read proven: 1,400; to read: median 1.2 s, longest 5.0 s of 3.',
  )
})

test.each([
  ['a test that was renamed', { [file]: ['a title that nobody gave'.toUpperCase()] }, [], 'has no title'],
  ['a file that is gone', { 'test/docs/gone.test.ts': [title] }, [], 'no such file'],
  ['a script that is gone', {}, ['npm run nowhere'], 'no nowhere'],
  ['a part that is gone', {}, ['npm run chaos -- --only ranges,nowhere'], 'no nowhere'],
  ['a soak that is none', {}, ['npm run test:soak -- docs/evidence'], 'no soak docs/evidence'],
  ['a path that is gone', {}, ['npx vitest run test/docs/gone.test.ts'], 'no test/docs/gone.test.ts'],
  ['a variable that nothing reads', {}, ['NO'.concat('WHERE=1 npm test')], 'no NOWHERE'],
] as [string, Record<string, string[]>, string[], string][])(
  'evidence that names %s is refused',
  (_title, tests, harder, message) => {
    expect(() => describe(tests, harder)).toThrow(message)
  },
)
