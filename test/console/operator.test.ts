import { Client, Connection } from '@temporalio/client'
import type { Page } from 'playwright-core'
import { inject, expect, onTestFinished, test } from 'vitest'
import { startDevServer } from '../../scripts/dev-server/start-dev-server.ts'
import { openBrowser } from '../browser.ts'
import { createWorld, startCommand, until, type World } from '../export/world.ts'
import { breakSome, idsOf, resumesAsked } from '../recovery/world.ts'
import { openUi } from './temporal-ui.ts'

const ana = { by: 'Ana', why: 'the gateway works again' }

async function begin(): Promise<{
  world: World
  client: Client
  page: Page
  ui: ReturnType<typeof openUi>
}> {
  const workspace = 'acc_1234'
  const world = await createWorld({
    workspace,
    counts: { customers: 3_000, subscriptions: 60, plans: 3, retentions: 0, orders: 0 },
    needsAttention: 0,
  })
  const binary = () => Promise.resolve(inject('temporalBinary'))
  const server = await startDevServer({ dataDir: world.dataDir, binary, ui: true })
  onTestFinished(() => server.stop({ graceMs: 0 }))
  Object.assign(world.env, { TEMPORAL_ADDRESS: server.address, BILLING_WORKSPACE: workspace })
  const worker = startCommand(world, ['worker'], { env: { BILLING_SETTLE_SECONDS: '0.3' } })
  await worker.says('Listening')
  const connection = await Connection.connect({ address: server.address })
  onTestFinished(() => connection.close())
  const page = await (await openBrowser()).newPage({ viewport: { width: 1280, height: 1000 } })
  const ui = openUi({ page, uiUrl: server.uiUrl ?? '' })
  return {
    world: { ...world, workspace, taskQueue: `billing-${workspace}` },
    client: new Client({ connection }),
    page,
    ui,
  }
}

test(
  'an operator recovers subscriptions from the Temporal UI: start form, preview, approval, stop',
  { timeout: 90_000 },
  async () => {
    const { world, client, ui } = await begin()
    const { taskQueue } = world
    const broken = breakSome(world, { ids: idsOf(world).slice(0, 12), reason: 'gateway_issue' })
    await ui.start({ workflowId: 'recover-today', taskQueue, workflowType: 'recoverSubscriptions' })
    await ui.open('recover-today')
    await ui.detailsSay('waiting for a person')
    await ui.detailsSay('charge_payment')
    await ui.picture('preview')
    expect(resumesAsked(world)).toEqual([])
    await ui.update('approve', ana)
    // A few go first, and the next ones only after minutes: a stop ends it, and a second one does not wait.
    await until(() => resumesAsked(world).length >= 5)
    await ui.signal('stop')
    const recovery = client.workflow.getHandle('recover-today')
    // It may have ended by then.
    await recovery.signal('stop').catch(() => undefined)
    await recovery.result()
    expect(new Set(resumesAsked(world)).size).toBe(resumesAsked(world).length)
    expect(broken).toEqual(expect.arrayContaining(resumesAsked(world)))
  },
)
