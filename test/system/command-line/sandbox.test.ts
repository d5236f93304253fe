import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { expect, it } from 'vitest'
import { toSettings } from '../../../sandbox/options.ts'
import { callCommand } from './call-command.ts'
import { runProgram } from './run-program.ts'

const start = (...words: string[]) =>
  runProgram({ program: 'scripts/start.js', words: ['sandbox', ...words] })

it('the sandbox serves a list to clients with the settings that it prints, until Ctrl-C', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
  writeFileSync(join(folder, 'options.json'), JSON.stringify({ counts: { plans: 7 }, token: 'mine' }))
  const { child, ended, says, texts } = start('--options', join(folder, 'options.json'))
  await says('BILLING_WORKSPACE')
  const settings = parseEnv(texts.stdout)
  const answer = await fetch(`${settings['BILLING_BASE_URL']}/plans/`, {
    headers: { authorization: 'Token mine', 'x-simple-workspace': settings['BILLING_WORKSPACE'] ?? '' },
  })
  expect({ status: answer.status, body: await answer.json() }).toMatchObject({
    status: 200,
    body: { count: 7 },
  })
  child.kill('SIGINT')
  expect(await ended).toMatchObject({ code: 0 })
  rmSync(folder, { recursive: true })
})

it('says where it is to a program, in one document', async () => {
  const { child, ended, says } = start('--json')
  await says('}')
  child.kill('SIGTERM')
  const { code, stdout } = await ended
  const told: unknown = JSON.parse(stdout)
  expect({ code, told }).toMatchObject({
    code: 0,
    told: { url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), token: expect.any(String) },
  })
})

it.each([
  [{ conts: { plans: 7 } }, ': there is no conts; the names are port, host, seed, counts, '],
  [{ counts: { plan: 7 } }, ': counts: there is no plan; the names are customers, '],
  [{ counts: { plans: 'many' } }, ': counts.plans: '],
  [{ drift: { plans: { perRequest: { update: 2 } } } }, ': drift.plans.perRequest: there is no update; '],
  [{ faults: [{ kind: 'reste' }] }, ': faults.0.kind: the kinds are latency, '],
  [{ faults: [{ kind: 'reset', ms: 1 }] }, ': faults.0: there is no ms; the names are kind, on, '],
  [[], ': Invalid input: expected object, received array.'],
])('refuses the options %j', async (options, says) => {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-'))
  const file = join(folder, 'options.json')
  writeFileSync(file, JSON.stringify(options))
  const { code, stderr } = await callCommand({ env: {} }, ['sandbox', '--options', file])
  expect([code, stderr]).toEqual([2, expect.stringContaining(says)])
  rmSync(folder, { recursive: true })
})

it('lists in its help every option that its file may have', async () => {
  const { stdout } = await start('--help').ended
  for (const name of Object.keys(toSettings({}))) expect(stdout).toMatch(new RegExp(`^  ${name} `, 'm'))
  expect(stdout).toMatch(/^ {2}latency +ms, jitterMs, where$/m)
})

it('refuses options that it cannot read', async () => {
  expect(await start('--port', 'x').ended).toMatchObject({
    code: 2,
    stderr: 'error: "x" cannot be used for --port <port>. Write a whole number from 0 to 65535.\n',
  })
  expect(await start('--options', '/nowhere').ended).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /^error: --options \/nowhere cannot be read as JSON: [^\n]*ENOENT[^\n]*\n$/,
    ),
  })
})
