import type { Sandbox } from '../../sandbox/sandbox.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { Session } from '../session/session.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** What each part of the demo runs with. */
export interface DemoContext {
  sandbox: Sandbox
  session: Session
  settings: Settings
  terminal: Terminal
}
