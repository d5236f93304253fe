import { Option, type Command } from 'commander'
import { prepareDataFolder } from '../worker/data-folder.ts'
import { listSettings } from '../worker/settings-docs.ts'
import { createService } from '../worker/service.ts'
import type { Settings } from '../worker/settings.ts'
import { checkFresh } from './checks/fresh.ts'
import { fine, look, type Finding } from './checks/finding.ts'
import { checkService } from './checks/service.ts'
import { openSession } from './session.ts'
import { processSettings } from './settings.ts'
import { exitCodes, UsageError } from './terminal/failures.ts'
import { formatTable } from './terminal/format.ts'
import type { Terminal } from './terminal/terminal.ts'

interface Options {
  fresh?: number
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .addOption(
      new Option(
        '--fresh <age>',
        'only: does each exported resource have a proven export no older than this',
      ).argParser(toMs),
    )
    .action(async ({ fresh }: Options) => {
      const settings = processSettings()
      const { dataDir, billing } = settings
      const findings =
        fresh === undefined
          ? await checkAll({ settings, terminal })
          : await checkFresh({ dataDir, testMode: billing.testMode, withinMs: fresh })
      const rows = findings.map(({ what, ok, says }) => [ok ? 'ok' : 'WRONG', what, says])
      const shown = fresh === undefined ? listSettings({ env: process.env, cwd: process.cwd() }) : []
      const text = [
        ...(shown.length === 0 ? [] : [toSettingsTable(shown), '']),
        formatTable({ head: ['', 'what', ''], rows }),
      ].join('\n')
      terminal.result({ document: { findings, settings: shown }, text })
      if (findings.some(({ ok }) => !ok)) process.exitCode = exitCodes.failed
    })
}

async function checkAll({
  settings,
  terminal,
}: {
  settings: Settings
  terminal: Terminal
}): Promise<Finding[]> {
  const service = checkService({ billing: createService(settings), testMode: settings.billing.testMode })
  const temporal = look('temporal', async () => {
    const session = await openSession({ settings, terminal })
    await session.close()
    return [fine('temporal', `A worker for ${session.identity.workspace} listens on ${settings.taskQueue}.`)]
  })
  const folder = look('data folder', () => checkFolder(settings.dataDir))
  return (await Promise.all([service, temporal, folder])).flat()
}

async function checkFolder(dataDir: string): Promise<Finding[]> {
  await prepareDataFolder(dataDir)
  return [fine('data folder', `${dataDir} can be written.`)]
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
