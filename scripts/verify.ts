import type { Command } from 'commander'
import { resolve } from 'node:path'
import { verifyExport } from '../destinations/csv/verify-export.ts'
import { exitCodes } from './terminal/failures.ts'
import type { Terminal } from './terminal/terminal.ts'

export function configure(command: Command, terminal: Terminal): void {
  command.argument('<folder>', 'the folder with the manifest').action(async (folder: string) => {
    const path = resolve(process.env['INIT_CWD'] ?? process.cwd(), folder)
    const { manifest, problems } = await verifyExport(path)
    const whole = `${path} is whole: ${manifest?.records} records of ${manifest?.resource}, ${manifest?.verdict}.`
    terminal.result({
      document: { folder: path, verdict: manifest?.verdict, problems },
      text: problems.length === 0 ? whole : problems.join('\n'),
    })
    if (problems.length > 0) process.exitCode = exitCodes.failed
    else if (manifest?.verdict === 'unproven') process.exitCode = exitCodes.unproven
  })
}
