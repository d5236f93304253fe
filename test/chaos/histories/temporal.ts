import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ImportResult } from '../../../core/imports/view.ts'
import { type Sandbox, createSandbox } from '../../../sandbox/sandbox.ts'
import { repairState } from '../../../scripts/commands/state.ts'
import { findServer } from '../../../scripts/dev-server/server-record.ts'
import { chooseLoss, writes } from './faults.ts'
import { makeFolder } from './folders.ts'
import { doublesOf, judgeImport } from './judge.ts'
import { Random } from '../random.ts'
import { createSubject, type SubjectName, subjectNames } from './subjects.ts'
import type { Tally } from '../tally.ts'

const rows = 24
const stormyCommands = 3
const calmCommands = 4

/** The files that a restore puts back, besides a kill. */
const restores = {
  kill: [],
  'state.db restored': ['state.db'],
  'state.db and Temporal restored': ['state.db', 'temporal.db'],
} as const
export type RealBlow = keyof typeof restores

interface RealHistory {
  seed: number
  tally: Tally
  job?: SubjectName
  /** What strikes the first commands, one after the other; chosen by the seed if left out. */
  blows?: readonly RealBlow[]
}

/**
 * Plays one history of an import with everything real: `import --local` with its own Temporal dev server and worker,
 * killed by SIGKILL in the middle of sending, and databases that are restored from backups made while it ran. Judges as
 * `playHistory` does.
 */
export async function playWithTemporal({ seed, tally, job, blows }: RealHistory): Promise<string[]> {
  const random = new Random(seed)
  // Deletes would wait for a person to approve them.
  const name = job ?? random.pick(subjectNames.filter((name) => name !== 'delete-orders'))
  const sandbox = await createSandbox({
    seed,
    counts: { customers: 30, subscriptions: rows, plans: 2, retentions: 0, orders: rows },
  })
  const subject = createSubject({ name, sandbox, rows })
  const dataDir = makeFolder()
  const backupDir = makeFolder()
  const file = join(dataDir, 'rows.csv')
  writeFileSync(file, subject.csv)
  const struck =
    blows ?? Array.from({ length: stormyCommands }, () => random.pick(Object.keys(restores) as RealBlow[]))
  const log: string[] = []
  const start = () =>
    startCommand({
      sandbox,
      dataDir,
      words: ['import', name, file, '--existing', 'skip', '--local', '--json'],
    })
  let hasBackup = false
  try {
    for (const blow of struck) {
      const { name: loss, fault } = chooseLoss(random)
      const slow = { kind: 'latency', ms: 40, on: writes } as const
      sandbox.control.setFaults({ faults: [slow, fault] })
      const command = start()
      await untilWritten({ sandbox, command, more: 1 + random.below(8) })
      if (!hasBackup || random.happens(0.5)) hasBackup = (await backUp({ dataDir, backupDir })) || hasBackup
      await untilWritten({ sandbox, command, more: 1 + random.below(8) })
      await command.kill()
      log.push(`${blow} (${loss})`)
      await serverGone(dataDir)
      const isRestored = hasBackup && restores[blow].length > 0
      tally.add(isRestored ? `real ${blow}` : 'real kill')
      if (isRestored) {
        for (const database of restores[blow]) restore({ dataDir, backupDir, database })
        await repairState({ place: { folder: dataDir } })
      }
      const doubled = doublesOf(subject)
      if (doubled.length > 0) return found(doubled)
    }
    sandbox.control.setFaults({ faults: [] })
    sandbox.control.landLateEffects()
    for (let time = 1; time <= calmCommands; time++) {
      const { stdout, stderr } = await start().ended
      log.push(`calm: ${stderr.trim().split('\n').at(-1)}`)
      if (stdout === '') continue
      const result = JSON.parse(stdout) as ImportResult
      tally.add(`real import ${result.verdict}`)
      const findings = [...doublesOf(subject), ...(await judgeImport({ result, subject }))]
      if (findings.length > 0) return found(findings)
      if (result.counts.unknown + result.counts.staged === 0) return []
    }
    return found([`is not finished after ${calmCommands} commands in which nothing went wrong`])
  } finally {
    await serverGone(dataDir)
    await sandbox.close()
    for (const folder of [dataDir, backupDir]) rmSync(folder, { recursive: true, force: true })
  }

  function found(findings: readonly string[]): string[] {
    return findings.map((finding) => `${name} with Temporal, seed ${seed}: ${finding} [${log.join('; ')}]`)
  }
}

const connector = fileURLToPath(new URL('../../../scripts/start.js', import.meta.url))

type Command = ReturnType<typeof startCommand>

function startCommand({ sandbox, dataDir, words }: { sandbox: Sandbox; dataDir: string; words: string[] }) {
  const { PATH, HOME, XDG_CACHE_HOME } = process.env
  const child = spawn(process.execPath, [connector, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH,
      HOME,
      XDG_CACHE_HOME,
      BILLING_BASE_URL: sandbox.url,
      BILLING_TOKEN: sandbox.token,
      BILLING_WORKSPACE: sandbox.workspace,
      BILLING_SETTLE_SECONDS: '1',
      CONNECTOR_DATA_DIR: dataDir,
    },
  })
  const texts = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => (texts[name] += text))
  const ended = new Promise<typeof texts>((resolve) => child.once('close', () => resolve(texts)))
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  return { ended, kill, hasEnded: () => child.exitCode !== null }
}

/** In ms, from the command's first request: a command whose run only looks up writes nothing more. */
const patienceMs = 20_000

/** Until so many writes more have arrived, or the command has ended. */
async function untilWritten({
  sandbox,
  command,
  more,
}: {
  sandbox: Sandbox
  command: Command
  more: number
}) {
  const { control } = sandbox
  const written = () => control.requests().filter(({ method }) => method !== 'GET').length
  const goal = written() + more
  const before = control.requests().length
  let until = Infinity
  while (written() < goal && !command.hasEnded() && Date.now() < until) {
    // On a busy machine a command may take longer than that to begin.
    if (until === Infinity && control.requests().length > before) until = Date.now() + patienceMs
    await wait(5)
  }
}

/** The command's server ends with it. */
async function serverGone(dataDir: string): Promise<void> {
  while (findServer(dataDir) !== undefined) await wait(10)
}

/** As `sqlite3 .backup`, while server and worker write. False before there are both. */
async function backUp({ dataDir, backupDir }: { dataDir: string; backupDir: string }): Promise<boolean> {
  const databases = ['temporal.db', 'state.db']
  if (!databases.every((database) => existsSync(join(dataDir, database)))) return false
  for (const database of databases) {
    const copy = join(backupDir, database)
    rmSync(copy, { force: true })
    const db = new DatabaseSync(join(dataDir, database))
    await backup(db, copy)
    db.close()
  }
  return true
}

function restore(of: { dataDir: string; backupDir: string; database: string }): void {
  const path = join(of.dataDir, of.database)
  for (const end of ['', '-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
  copyFileSync(join(of.backupDir, of.database), path)
}
