import type { Command } from 'commander'
import { configureApply } from '../schedules/apply.ts'
import { configureList } from '../schedules/list.ts'
import { configureDelete, configurePause, configureTrigger, configureUnpause } from '../schedules/control.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  configureApply(command.command('apply'), terminal)
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
