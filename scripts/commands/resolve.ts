import type { Command } from 'commander'
import { personHere } from '../runs/ask.ts'
import { resolveInImport, resolveLocally } from '../runs/update-import.ts'
import { processSettings } from '../session/settings.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { shell } from '../../core/runs/view/shell.ts'

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
    .argument('<run>', 'the name of the run')
    .requiredOption(
      '--row <n>',
      'the parked row, as parked.csv names it; several as 17,18 with --absent or --drop',
    )
    .option('--exists <id>', 'the service has it, under this id')
    .option('--absent', 'it is not there: send it again')
    .option('--drop', 'leave it')
    .requiredOption('--why <words>', 'how you know; it goes into the report')
    .option('--by <name>', 'who (default: the user of this machine)')
    .option('--local', 'with a Temporal dev server and a worker of its own, to the end of the run')
    .action(async (run: string, options: Options) => {
      const { row, exists, absent, drop, why, by = personHere(), local } = options
      const decision = {
        ...(exists !== undefined && { exists }),
        ...(absent && { absent }),
        ...(drop && { drop }),
      }
      if (Object.keys(decision).length !== 1)
        throw new UsageError('Say one of --exists <id>, --absent, --drop.')
      const rows = row.split(',').map(Number)
      const input = { ...(rows.length === 1 ? { row: rows[0] } : { rows }), ...decision, by, why }
      const settings = processSettings()
      if (local === true) return await resolveLocally({ settings, terminal, run, input })
      const answer = await resolveInImport({ settings, run, input })
      const text = `${answer}. See what becomes of it with: ${shell`connector watch ${run}`}`
      terminal.result({ document: { run, answer }, text })
    })
}
