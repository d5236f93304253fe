import type { Command } from 'commander'
import { configureList } from '../schedules/list.ts'
import { configureDelete, configurePause, configureTrigger, configureUnpause } from '../schedules/control.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  command
    .command('apply')
    .description('create, change and delete the schedules in Temporal so that they match a file')
    .argument('[file]', 'the schedules file', 'schedules.yaml')
    .option('--yes', 'apply without asking')
    .action(async (file: string, { yes = false }: { yes?: boolean }) => {
      // Loaded late: no other command of schedules reads the file.
      const { applyFile } = await import('../schedules/apply.ts')
      await applyFile({ file, yes, terminal })
    })
  configureList(command.command('list'), terminal)
  configurePause(command.command('pause'), terminal)
  configureUnpause(command.command('unpause'), terminal)
  configureTrigger(command.command('trigger'), terminal)
  configureDelete(command.command('delete'), terminal)
  addExamples(command, 'inspect', {
    'schedule apply': 'show what schedules.yaml would change, ask, apply it',
    'schedule list': 'next run, last run and its verdict',
    'schedule trigger export-nightly': 'start a run now',
    'schedule pause export-nightly --why "the service is migrated tonight"':
      'start no runs until it is unpaused',
  })
}
