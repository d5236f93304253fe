import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

/** `PICTURES=docs/pictures vitest run test/console` takes the pictures of the docs anew. */
const pictures = process.env['PICTURES']

/** What an operator does in the Temporal UI, as the UI lays it out. */
export function openUi({ page, uiUrl }: { page: Page; uiUrl: string }) {
  const workflows = `${uiUrl}/namespaces/default/workflows`
  const dialog = page.getByRole('dialog')

  async function choose(item: string): Promise<void> {
    await page.getByRole('button', { name: 'More Actions' }).click()
    await page.getByRole('menuitem', { name: item }).click()
  }

  async function picture(name: string): Promise<void> {
    if (pictures === undefined) return
    await mkdir(pictures, { recursive: true })
    await page.screenshot({ path: join(pictures, `${name}.png`), animations: 'disabled' })
  }

  async function submit(list: RegExp, name: string, data?: object): Promise<void> {
    await dialog.getByRole('button', { name: list }).click()
    await page.getByRole('option', { name: new RegExp(`^${name}\\b`) }).click()
    if (data !== undefined) {
      await dialog.locator('.cm-content').click()
      // Typed key by key, an r would be the UI's own key for a fresh look.
      await page.keyboard.insertText(JSON.stringify(data))
      // Left, the editor lays its text out anew, over several lines, and moves the buttons.
      await dialog.getByRole('button', { name: 'Submit' }).focus()
      await dialog.locator('.cm-line').nth(1).waitFor()
      await picture(name)
    }
    // A dialog that still moves can miss the first click; the same signal or update id twice is one.
    for (let closed = false; !closed;) {
      await dialog.getByRole('button', { name: 'Submit' }).click({ timeout: 5_000 })
      closed = await dialog.waitFor({ state: 'hidden', timeout: 3_000 }).then(
        () => true,
        () => false,
      )
    }
  }

  return {
    picture,

    /** The start form, filled in by its link; the input stays empty. */
    async start(options: { workflowId: string; taskQueue: string; workflowType: string }): Promise<void> {
      await page.goto(`${workflows}/start-workflow?${new URLSearchParams(options).toString()}`)
      await page.getByText('Task Queue is Active').waitFor()
      await picture('start')
      const button = page.getByRole('button', { name: 'Start Workflow' })
      const started = page.waitForResponse((response) => response.request().method() === 'POST')
      await button.click()
      await started
    },

    async open(workflowId: string): Promise<void> {
      await page.goto(`${workflows}/${workflowId}`)
      await page.getByRole('heading', { name: workflowId, level: 1 }).waitFor()
    },

    /** Waits until the run's current details say so. */
    async detailsSay(text: string): Promise<void> {
      await page.getByRole('tab', { name: 'User Metadata' }).click()
      const said = page.frameLocator('iframe').getByText(text).first()
      for (;;) {
        const seen = await said.waitFor({ timeout: 1_000 }).then(
          () => true,
          () => false,
        )
        if (seen) return
        // The UI looks anew when it is asked to.
        await page.reload()
      }
    },

    async update(name: string, data: object): Promise<void> {
      await choose('Send an Update')
      await submit(/Select an update/i, name, data)
    },

    async signal(name: string): Promise<void> {
      await choose('Send a Signal')
      await submit(/Select a signal/i, name)
    },
  }
}
