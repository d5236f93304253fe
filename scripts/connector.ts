import { runCommandLine } from './command-line.ts'
import { commands } from './commands/commands.ts'

await runCommandLine({ words: process.argv.slice(2), commands })
