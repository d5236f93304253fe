import type { Command } from 'commander'
import { idRule, isId } from '../../core/imports/read-ids.ts'
import { personHere } from '../runs/person.ts'
import { resolveInRun, resolveLocally } from '../runs/update-import.ts'
import { processSettings } from '../session/settings.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'
import { addExamples, byOption } from './options.ts'

interface Options {
  row: string
  exists?: string
  absent?: true
  drop?: true
  why: string
  by?: string
  local?: true
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'name of the run')
    .requiredOption('--row <n>', 'the parked row, as in parked.csv; several as 17,18 with --absent or --drop')
    .option(
      '--exists <id>',
      'the service has the record under this id; it is asked, and a later --exists corrects it',
    )
    .option('--absent', 'the service does not have it: send it again')
    .option('--drop', 'do not send it')
    .requiredOption('--why <reason>', 'how you know; it goes into the report')
    .addOption(byOption())
    .option('--local', 'start a Temporal dev server and a worker for this command, until the run ends')
    .action(async (run: string, options: Options) => {
      const { row, exists, absent, drop, why, by = personHere(), local } = options
      const decision = {
        ...(exists !== undefined && { exists }),
        ...(absent && { absent }),
        ...(drop && { drop }),
      }
      if (Object.keys(decision).length !== 1)
        throw new UsageError('Give one of --exists <id>, --absent and --drop.')
      if (exists !== undefined && !isId(exists))
        throw new UsageError(`${exists} is not a valid id; ${idRule}.`)
      const rows = row.split(',').map(Number)
      const input = { ...(rows.length === 1 ? { row: rows[0] } : { rows }), ...decision, by, why }
      const settings = processSettings()
      if (local === true) return await resolveLocally({ settings, terminal, run, input })
      const answer = await resolveInRun({ settings, terminal, run, input })
      const text = `${answer}. Follow the run with: ${shell`connector watch ${run}`}`
      terminal.result({ document: { run, answer }, text })
    })
  addExamples(command, 'run', {
    'resolve import-retentions-rows-6a47033b --row 17 --exists 5012 --why "found in the UI"':
      'the service has the record',
    'resolve import-retentions-rows-6a47033b --row 18,19 --absent --why "not in the list of the day"':
      'send both rows again',
  })
}
