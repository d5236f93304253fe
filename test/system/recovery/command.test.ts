import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { recoveryRequest, runRecovery } from '../../../scripts/runs/jobs.ts'
import { personWho } from '../command-line/person-who.ts'
import { readSettings } from '../../../worker/settings/settings.ts'
import { createWorld, until } from '../export/world.ts'
import { begin, breakSome, idsOf, resume, resumesAsked, resumesDone, well } from './world.ts'

const soon = { BILLING_SETTLE_SECONDS: '0.3' }
const open = async (options: Parameters<typeof begin>[0]) => (await begin(options)).world

type Order = Omit<Parameters<typeof runRecovery>[0], 'settings' | 'terminal'>

const quickWords = ['--input', 'coolDown=0', '--json']

describe('connector recover', () => {
  test('ends with 0 and a proof although others need a person, and tells it with --json, also afterwards', async () => {
    const world = await open({ broken: 9 })
    breakSome(world, { ids: idsOf(world).slice(20, 22), reason: 'without_usage_records' })
    const command = (...words: string[]) => callCommand(world, words, { env: soon })
    const { code, stdout, stderr } = await command('recover', ...quickWords)
    expect(stderr).toContain(`LIVE ${world.workspace}`)
    const report = JSON.parse(stdout) as { run: string }
    expect({ code, report }).toMatchObject({
      code: 0,
      report: {
        run: expect.stringMatching(/^recover-[0-9a-f]{10}$/),
        summary: '9 of 9 recovered; proven; 2 others need a person',
        verdict: 'proven',
        counts: { staged: 0, done: 9, rejected: 0, unknown: 0, parked: 2, skipped: 0, notTried: 0 },
        files: { results: expect.stringMatching(/recovery\.csv$/), report: expect.any(String) },
        audit: null,
        outcomes: { recovered: 9, needsPerson: 2 },
      },
    })
    expect((await command('run', 'report', report.run)).stdout).toContain(
      '2 without_usage_records: no usage was reported',
    )
    const again = await command('run', 'report', report.run, '--json')
    expect({ code: again.code, report: JSON.parse(again.stdout) as object }).toMatchObject({
      code: 0,
      report,
    })
    expect((await command('run', 'list')).stdout).toContain(report.run)
    expect((await command('run', 'show', report.run)).stdout).toMatch(
      /completed[^]*done +9[^]*9 of 9 recovered/,
    )
    const refused = await command('run', 'resolve', report.run, '--rows', '1', '--drop', '--why', 'x')
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain('is not in progress')
  })

  test(
    'started twice at once is one run, and once that has ended the next one',
    { tags: ['long'] },
    async () => {
      const world = await open({ broken: 4 })
      const recover = async (...words: string[]) => {
        const { stdout } = await callCommand(world, ['recover', ...words, ...quickWords], { env: soon })
        return JSON.parse(stdout) as { run: string }
      }
      // Nothing is known of a run in the data folder before the service has answered it.
      const down = { kind: 'error', status: 503, on: 'GET /subscriptions/' } as const
      world.sandbox.control.setFaults({ faults: [down] })
      const first = await recover('--detach')
      expect((await recover('--detach')).run).toBe(first.run)
      const settings = readSettings({ env: world.env, cwd: world.dataDir })
      expect(recoveryRequest({ settings, input: { canary: 2 } }).workflowId, 'of another input').not.toBe(
        first.run,
      )
      world.sandbox.control.setFaults({ faults: [] })
      const { stdout } = await callCommand(world, ['run', 'watch', first.run, '--json'], { env: soon })
      const { done, staged } = (JSON.parse(stdout) as { counts: Record<string, number> }).counts
      expect({ done, staged, resumed: resumesDone(world).length }).toEqual({ done: 4, staged: 0, resumed: 4 })
      expect(await recover()).toMatchObject({ run: `${first.run}.2`, counts: { done: 0 } })
    },
  )

  test('says what the service answered to a canary that failed, and never to resume the same ones again', async () => {
    const world = await open({ broken: 8 })
    const faults = [{ kind: 'refuse', answer: { detail: 'The card has expired.' }, on: resume }] as const
    world.sandbox.control.setFaults({ faults: [...faults] })
    const words = ['--input', 'canary=2']
    const recover = () => callCommand(world, ['recover', ...words], { env: soon })
    const first = await recover()
    expect(first.code).toBe(3)
    expect(first.stdout).toContain(
      'The canary failed: all that went first for gateway_issue failed, so 6 others',
    )
    expect(first.stdout).toMatch(/^ *1 +sub_\S+ +rejected +The card has expired\.$/m)
    expect(first.stdout.match(/^Next: .*$/gm)).toEqual([
      'Next: find out in the service why all that went first for gateway_issue failed, then recover the other 6',
    ])
    const run = /^(recover-\S+): /m.exec(first.stdout)?.[1] ?? ''
    const folder = join(world.dataDir, 'recoveries', run)
    for (const name of ['report.json', 'report.html'])
      expect(await readFile(join(folder, name), 'utf8')).toContain('The card has expired.')
    // A refusal is not "resumed recently": the next run takes all of them.
    world.sandbox.control.setFaults({ faults: [] })
    const second = await recover()
    expect(second.stdout).toContain('8 of 8 recovered; proven')
    // What was resumed recently is named, with the time until when it is left alone.
    const [id = ''] = breakSome(world, { ids: idsOf(world).slice(0, 1), reason: 'gateway_issue' })
    const third = await recover()
    expect(third.stdout).toContain('nothing to resume; proven; 1 resumed recently and left alone')
    expect(third.stdout).toMatch(new RegExp(`  ${id}: resumed at .* by ${run}\\.2; tried again from 20`))
  })

  test('shows in status and report of a run that waits what it would do, what it asks, and nothing of its end', async () => {
    const world = await open({ broken: 4 })
    breakSome(world, { ids: idsOf(world).slice(10, 12), reason: 'without_reference' })
    const command = (...words: string[]) => callCommand(world, words, { env: soon })
    const started = await command('recover', '--wait-for-approval', '--detach', ...quickWords)
    const { run } = JSON.parse(started.stdout) as { run: string }
    await until(async () => (await command('run', 'show', run)).stdout.includes('waiting for approval'))
    const status = (await command('run', 'show', run)).stdout
    expect(status).toMatch(/gateway_issue +4/)
    expect(status).toContain(
      `To approve: npx connector run approve ${run} --why "..."; to end it: npx connector run stop ${run}`,
    )
    const { stdout } = await command('run', 'report', run)
    expect(stdout).toContain('0 of 4 recovered; not ended: 4 not sent yet')
    expect(stdout).toMatch(/^reason .* not resumed yet/m)
    expect(stdout).not.toMatch(/ended before|unproven|not tried/)
    await command('run', 'stop', run)
  })

  test.each([
    [['--reason', 'gatway_issue'], /Did you mean gateway_issue\?/],
    [
      ['--reason', 'biller_issue,gatway_issue'],
      /"biller_issue,gatway_issue" cannot be used for --reason <reasons>\. Did you mean gateway_issue\?/,
    ],
    [['--input', 'nextBilling=2027-02-30'], /2027-02-30 does not exist/],
    [
      ['--input', 'maxPages=0'],
      /"maxPages=0" cannot be used for --input <field=value>\. Write a whole number from 1/,
    ],
    [['--input', 'canry=2'], /There is no field of the input canry\. Did you mean canary\?/],
    [['--input', 'approval'], /"approval" cannot be used for --input <field=value>\. Write field=value/],
    [
      ['--input', 'approval=yes'],
      /"approval=yes" cannot be used for --input <field=value>\. Write true or false/,
    ],
    [
      ['--older-than', '2weeks'],
      /"2weeks" cannot be used for --older-than <time>\. "2weeks" is not a duration such as/,
    ],
    [['--rate', '5'], /unknown option '--rate'; did you mean --input requestsPerSecond=<value>\?/],
    [['--customers', '501'], /unknown option '--customers'; did you mean --input customers=<value>\?/],
    [['--max-pages=5'], /unknown option '--max-pages'; did you mean --input maxPages=<value>\?/],
    [['--yse'], /unknown option '--yse'; did you mean --yes\?/],
    [
      ['--input', 'requestsPerSecond=x'],
      /"requestsPerSecond=x" cannot be used for --input <field=value>\. Write a number above 0/,
    ],
    [['--local', '--detach'], /--local and --detach cannot be combined/],
  ])('refuses %j with a sentence, before it starts anything', async (words, says) => {
    const world = await createWorld(well)
    const { code, stderr } = await callCommand(world, ['recover', ...words])
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(says) })
    expect(world.sandbox.control.counters().requests).toBe(0)
  })
})

describe('a person at a terminal', () => {
  const order: Order = {
    input: { verifyAfter: '30ms', coolDown: 0 },
    yes: false,
    local: false,
    detach: false,
  }

  /** Answers each question as told, and keeps what was shown. */
  async function recoverAt(world: Parameters<typeof idsOf>[0], answers: string[], more: Partial<Order> = {}) {
    const { terminal, questions, notes } = personWho(answers)
    const settings = readSettings({ env: { ...world.env, ...soon }, cwd: world.dataDir })
    onTestFinished(() => void (process.exitCode = 0))
    await runRecovery({ settings, terminal, ...order, ...more })
    return { questions, notes: notes.join('\n'), code: process.exitCode }
  }

  test(
    'sees what would be resumed before anything is, and a no ends it there',
    { tags: ['long'] },
    async () => {
      const world = await open({ broken: 6 })
      const wary = await recoverAt(world, ['n'])
      expect(wary).toMatchObject({ code: 3, questions: ['Resume 6 subscriptions? [y/N] '] })
      expect(wary.notes).toMatch(/By collection_scheme .*\n +subscriptions\n\w+ +\d/)
      expect(wary.notes).toMatch(/By next_billing .*\n +subscriptions\n(past|future) +\d/)
      expect(resumesAsked(world)).toEqual([])
      const sure = await recoverAt(world, ['y'])
      expect(sure).toMatchObject({ code: 0, questions: [expect.any(String)] })
      expect(resumesDone(world)).toHaveLength(6)
    },
  )
})
