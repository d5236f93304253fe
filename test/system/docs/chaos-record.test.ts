import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { recordSchema } from '../../chaos/record.ts'

test('the chaos writes its totals and the command that repeats them', { tags: ['long'] }, () => {
  const path = join(mkdtempSync(join(tmpdir(), 'chaos-')), 'ranges.json')
  const args = ['--only', 'ranges', '--rounds', '3', '--json', path, '--seed', '1']
  const printed = execFileSync(process.execPath, ['test/chaos/chaos.ts', ...args], { encoding: 'utf8' })
  const record = recordSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  expect(record.command).toBe('npm run chaos -- --only ranges --rounds 3 --seed 1')
  expect(record.parts).toMatchObject([{ part: 'ranges', firstSeed: 1, rounds: 3, found: 0 }])
  expect(printed).toContain(`${record.parts[0]!.counts['ranges: requests']}  ranges: requests`)
})
