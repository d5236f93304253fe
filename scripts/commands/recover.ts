import type { Command } from 'commander'
import { type RecoveryInput, recoveryInput } from '../../core/recoveries/input.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addExamples,
  addInputOptions,
  addOtherFields,
  addServerOptions,
  inputOf,
  loadJobs,
  processSettings,
  type ServerOptions,
  toServer,
} from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  addOtherFields(addInputOptions(command, recoveryInput), recoveryInput).option(
    '--yes',
    'do not ask on a terminal',
  )
  addServerOptions(command).action(
    async ({ yes = false, ...options }: ServerOptions & RecoveryInput & { yes?: boolean }) => {
      const server = toServer(options)
      const settings = processSettings()
      const input = inputOf(recoveryInput, options)
      const { runRecovery } = await loadJobs()
      await runRecovery({ settings, terminal, input, yes, ...server })
    },
  )
  addExamples(command, 'run', {
    'recover --dry-run': 'the preview only',
    'recover --reason gateway_issue --max-changes 100 --input requestsPerSecond=5':
      'one reason, within bounds',
    'recover --input customers=501,502 --wait-for-approval':
      'two customers, after an approval in the Temporal UI',
  })
}
