import { Option, type Command } from 'commander'
import { listSettings } from '../../worker/settings/docs.ts'
import { createService } from '../../worker/service.ts'
import { SettingsError } from '../../worker/settings/errors.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { checkFresh } from '../checks/fresh.ts'
import { look, wrong, type Finding } from '../checks/finding.ts'
import { checkFolder } from '../checks/folder.ts'
import { checkSecrets } from '../checks/secrets.ts'
import { checkService } from '../checks/service.ts'
import { checkTemporal } from '../checks/temporal.ts'
import { checkWarehouse } from '../checks/warehouse.ts'
import { toDestinations, type Destination } from '../runs/publish-options.ts'
import { processSettings } from '../session/settings.ts'
import { exitCodes, UsageError } from '../terminal/failures.ts'
import { formatTable } from '../../core/runs/view/format.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Options {
  fresh?: number
  to?: Destination[]
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .addOption(
      new Option(
        '--fresh <age>',
        'only: does each exported resource have a proven export no older than this',
      ).argParser(toMs),
    )
    .addOption(
      new Option('--to <destinations>', 'with --fresh: only these, with commas').argParser(toDestinations),
    )
    .action(async ({ fresh, to }: Options) => {
      if (to !== undefined && fresh === undefined)
        throw new UsageError('--to narrows --fresh; give that too.')
      const findings =
        fresh === undefined ? await checkAll(terminal) : await lookForFresh({ withinMs: fresh, to })
      const rows = findings.map(({ what, ok, says }) => [ok ? 'ok' : 'WRONG', what, says])
      const shown = fresh === undefined ? listSettings({ env: process.env, cwd: process.cwd() }) : []
      const text = [
        ...(shown.length === 0 ? [] : [toSettingsTable(shown), '']),
        formatTable({ head: ['', 'what', ''], rows }),
      ].join('\n')
      terminal.result({ document: { findings, settings: shown }, text })
      const wrongs = findings.filter(({ ok }) => !ok)
      if (wrongs.some(({ what }) => what === 'settings')) process.exitCode = exitCodes.refused
      else if (wrongs.length > 0) process.exitCode = exitCodes.failed
    })
}

function lookForFresh(asked: { withinMs: number; to: Destination[] | undefined }): Promise<Finding[]> {
  const { dataDir, billing } = processSettings()
  return checkFresh({ dataDir, testMode: billing.testMode, ...asked })
}

async function checkAll(terminal: Terminal): Promise<Finding[]> {
  const settings = readOrFind()
  if (Array.isArray(settings)) return settings
  const { dataDir, taskQueue, billing } = settings
  const secrets = look('secrets', async () => checkSecrets(settings))
  const service = checkService({ billing: createService(settings), testMode: billing.testMode })
  const place = checkTemporal({ settings, terminal }).then(async ({ findings, served }) => {
    const folder = { dataDir, taskQueue, served, allowed: settings.allowReadableSecrets }
    return [...findings, ...(await look('data folder', () => checkFolder(folder)))]
  })
  return (await Promise.all([secrets, service, place, checkWarehouse(settings)])).flat()
}

/** The settings or, as a finding each, what is wrong with them; nothing else can be looked at then. */
function readOrFind(): Settings | Finding[] {
  try {
    return processSettings()
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    return error.problems.map((problem) => wrong('settings', problem))
  }
}

const toSettingsTable = (settings: ReturnType<typeof listSettings>) =>
  formatTable({
    head: ['variable', 'value', 'from'],
    rows: settings.map(({ name, value, from }) => [name, value ?? '', from]),
  })

const unitMs: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

function toMs(text: string): number {
  const [, number, unit] = /^(\d+)([mhd])$/.exec(text) ?? []
  const ms = unitMs[unit ?? '']
  if (ms === undefined) throw new UsageError(`--fresh ${text} is no age; write it as 90m, 26h or 2d.`)
  return Number(number) * ms
}
