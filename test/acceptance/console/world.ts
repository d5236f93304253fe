import { Client, Connection } from '@temporalio/client'
import { inject, onTestFinished } from 'vitest'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import type { importFile } from '../../../workflows/import-file.ts'
import { launchBrowser } from '../browser.ts'
import { openTestWorker, openWorld } from '../../system/export/world.ts'
import { openUi } from './temporal-ui.ts'

export type Console = Awaited<ReturnType<typeof openConsole>>

/** A service, a Temporal server with its UI, a worker and a browser: one of each for the tests of a file. */
export async function openConsole(sandbox: SandboxOptions) {
  // A workspace by name, and not one that says which process it is: it is in the pictures of the docs.
  const opened = await openWorld({ workspace: 'acc_1234', ...sandbox })
  const server = await startDevServer({
    dataDir: opened.dataDir,
    binary: () => Promise.resolve(inject('temporalBinary')),
  })
  const env = { ...opened.env, BILLING_WORKSPACE: 'acc_1234', TEMPORAL_ADDRESS: server.address }
  const world = { ...opened, workspace: 'acc_1234', taskQueue: 'billing-acc_1234', env }
  const worker = await openTestWorker(world, { BILLING_SETTLE_SECONDS: '0.3' })
  const connection = await Connection.connect({ address: server.address })
  const browser = await launchBrowser()
  return {
    world,
    client: new Client({ connection }),
    /** The UI in a page of the test's own: what one leaves open is nothing to the next. */
    async openUi() {
      const page = await browser.newPage({ viewport: { width: 1280, height: 1000 } })
      onTestFinished(() => page.close())
      return openUi({ page, uiUrl: server.uiUrl })
    },
    async close() {
      await browser.close()
      await connection.close()
      await worker.stop()
      await server.stop()
      await world.close()
    },
  }
}

export const runOf = (client: Client, workflowId: string) =>
  client.workflow.getHandle<typeof importFile>(workflowId)
