import type { Command } from 'commander'
import { createCommandService } from '../../worker/service.ts'
import { listSettings } from '../../worker/settings/variables.ts'
import { SettingsError } from '../../worker/settings/environment.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import {
  checkFiles,
  checkFolder,
  checkSecrets,
  checkWarehouse,
  type Finding,
  runCheck,
  wrong,
} from '../checks/places.ts'
import { checkService } from '../checks/service.ts'
import { checkReplay, checkTemporal } from '../checks/temporal.ts'
import { addExamples, processSettings } from './options.ts'
import { exitCodes } from '../terminal/failures.ts'
import { formatTable } from '../../core/runs/view/format.ts'
import { tellIfSlow, type Terminal } from '../terminal/terminal.ts'

interface Options {
  all?: true
  replay?: true
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .option('--replay', 'check only that every open run can resume with this version')
    .option('--all', 'show every setting and where it comes from')
    .action(async ({ replay, all }: Options) => {
      const { findings, hint } = replay
        ? { findings: await checkReplay({ settings: processSettings(), terminal }), hint: undefined }
        : await checkAll(terminal)
      const settings = !replay ? listSettings({ env: process.env, cwd: process.cwd() }) : []
      const text = [
        toTable(findings),
        ...(hint === undefined ? [] : [hint]),
        ...(all ? [toSettingsTable(settings)] : []),
      ].join('\n\n')
      terminal.result({ document: { findings, settings }, text })
      const problems = findings.filter(({ status }) => status === 'wrong')
      if (problems.some(({ check }) => check === 'settings')) process.exitCode = exitCodes.refused
      else if (problems.length > 0) process.exitCode = exitCodes.failed
    })
  addExamples(command, 'check', {
    check: 'settings, service, lists, Temporal, worker, data folder, bucket and warehouse',
    'check --all': 'the same, and the value of every setting',
    'check --replay': 'before an upgrade: can every open run resume with this version?',
  })
}

interface Found {
  findings: Finding[]
  /** What to do about all of them. */
  hint?: string
}

async function checkAll(terminal: Terminal): Promise<Found> {
  const settings = readOrFind()
  if ('findings' in settings) return settings
  const { taskQueue, billing } = settings
  const secrets = runCheck('secrets', async () => checkSecrets(settings))
  const service = tellIfSlow({
    terminal,
    line: 'Waiting for the service ...',
    work: checkService({ billing: createCommandService(settings), testMode: billing.testMode }),
  })
  const temporal = checkTemporal({ settings, terminal }).then(async ({ findings, served }) => {
    const folder = { place: settings.state, taskQueue, served }
    return [...findings, ...(await runCheck('data folder', () => checkFolder(folder)))]
  })
  const state = checkDatabase(settings)
  const others = [checkFiles(settings), checkWarehouse(settings)]
  return { findings: (await Promise.all([secrets, service, temporal, state, ...others])).flat() }
}

/** Nothing for a state in the data folder. Loaded late: only a state on PostgreSQL needs its driver. */
async function checkDatabase(settings: Settings): Promise<Finding[]> {
  const { database } = settings.state
  if (database === undefined) return []
  const { checkState } = await import('../checks/state.ts')
  return await checkState({ ...settings, database })
}

/** The settings or, if they are invalid, a finding per problem; nothing else can be checked then. */
function readOrFind(): Settings | Found {
  try {
    return processSettings()
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    return { findings: error.problems.map((problem) => wrong('settings', problem)), hint: error.hint }
  }
}

const labels: Readonly<Record<Finding['status'], string>> = {
  ok: 'ok',
  notRunning: 'not running',
  wrong: 'WRONG',
}

const toTable = (findings: readonly Finding[]) =>
  formatTable({
    head: ['', 'check', ''],
    rows: findings.map(({ check, status, message }) => [labels[status], check, message]),
  })

const toSettingsTable = (settings: ReturnType<typeof listSettings>) =>
  formatTable({
    head: ['variable', 'value', 'from'],
    rows: settings.map(({ name, value, from }) => [name, value ?? '', from]),
  })
