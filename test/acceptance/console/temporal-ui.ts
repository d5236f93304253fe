import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Locator, Page, Request } from 'playwright-core'

/** `PICTURES=docs/pictures vitest run test/acceptance/console` takes the pictures of the docs again. */
const pictures = process.env['PICTURES']

/** The actions of an operator in the Temporal UI. */
export function openUi({ page, uiUrl }: { page: Page; uiUrl: string }) {
  const workflows = `${uiUrl}/namespaces/default/workflows`
  const dialog = page.getByRole('dialog')

  async function choose(item: string): Promise<void> {
    await page.getByRole('button', { name: 'More Actions' }).click()
    await page.getByRole('menuitem', { name: item, exact: true }).click()
  }

  async function picture(name: string | undefined): Promise<void> {
    if (pictures === undefined || name === undefined) return
    await mkdir(pictures, { recursive: true })
    // Without the UI's own navigation, which is the same on all.
    const { x = 0 } = (await page.getByRole('main').boundingBox()) ?? {}
    const { width = 0, height = 0 } = page.viewportSize() ?? {}
    const clip = { x, y: 0, width: width - x, height }
    await page.screenshot({ path: join(pictures, `${name}.png`), animations: 'disabled', clip })
  }

  /** Typed key by key, an r would be the UI's own key for a fresh look. A dialog keeps what was typed last. */
  async function type(editor: Locator, data: object): Promise<void> {
    await editor.click()
    await page.keyboard.press('ControlOrMeta+a')
    await page.keyboard.insertText(JSON.stringify(data))
  }

  /** A dialog that still moves can miss a click: then nothing was sent, and it is clicked again. */
  async function press(name: string): Promise<void> {
    const sent = new Set<Request>()
    const note = (request: Request) => void (isAction(request) && sent.add(request))
    page.on('request', note)
    while (sent.size === 0) {
      await dialog.getByRole('button', { name, exact: true }).click()
      if (sent.size === 0) await page.waitForRequest(isAction, { timeout: 2_000 }).catch(() => undefined)
    }
    page.off('request', note)
    await dialog.waitFor({ state: 'hidden', timeout: 10_000 }).catch(async () => {
      const words = (await dialog.innerText()).replaceAll(/\s+/g, ' ')
      throw new Error(`The UI refuses: ${words}`)
    })
  }

  async function submit(list: RegExp, name: string, said: { data?: object; shot?: string } = {}) {
    await dialog.getByRole('button', { name: list }).click()
    await page.getByRole('option', { name: new RegExp(`^${name}\\b`) }).click()
    if (said.data !== undefined) {
      await type(dialog.locator('.cm-content'), said.data)
      // When it loses the focus, the editor wraps its text over several lines, which moves the buttons.
      await dialog.getByRole('button', { name: 'Submit' }).focus()
      await dialog.locator('.cm-line').nth(1).waitFor()
    }
    await picture(said.shot)
    await press('Submit')
  }

  /** A busy machine takes its time to show a page, so each load gets more of it than the one before. */
  async function reloadUntil(visible: Locator): Promise<void> {
    for (let ms = 2_000; !(await isSoon(visible, 'visible', ms)); ms *= 2) await page.reload()
  }

  /** Presses the start form's button, and says which execution it began. */
  async function pressStart(): Promise<string> {
    const button = page.getByRole('button', { name: 'Start Workflow', exact: true })
    await button.focus()
    const started = page.waitForResponse((response) => response.request().method() === 'POST')
    await button.click()
    const { runId } = (await (await started).json()) as { runId: string }
    return runId
  }

  return {
    picture,

    /** The start form, filled in by its link, and an input typed into it or left empty. */
    async start({
      input,
      shot,
      ...options
    }: {
      workflowId: string
      taskQueue: string
      workflowType: string
      input?: object
      shot?: string
    }): Promise<string> {
      await page.goto(`${workflows}/start-workflow?${new URLSearchParams(options).toString()}`)
      await page.getByText('Task Queue is Active').waitFor()
      if (input !== undefined) {
        const editor = page.locator('.cm-content').first()
        await type(editor, input)
        await page.getByRole('button', { name: 'Start Workflow', exact: true }).focus()
        await editor.locator('.cm-line').nth(1).waitFor()
      }
      await picture(shot)
      return await pressStart()
    },

    async open(workflowId: string): Promise<void> {
      await page.goto(`${workflows}/${encodeURIComponent(workflowId)}`)
      await page.getByRole('heading', { name: workflowId, level: 1 }).waitFor()
    },

    /** Waits until the run's current details say so. */
    async detailsSay(text: string | RegExp): Promise<void> {
      await page.getByRole('tab', { name: 'User Metadata' }).click()
      const said = page.frameLocator('iframe').getByText(text).first()
      // The UI reads the page again on request.
      await reloadUntil(said)
    },

    /** Whether the current details are no wider than their place. */
    async detailsFit(): Promise<boolean> {
      return await page
        .frameLocator('iframe')
        .locator('html')
        .evaluate((html) => html.scrollWidth <= html.clientWidth)
    },

    /** Chooses the columns of the list of runs, which the UI keeps in the browser. */
    async showColumns(labels: readonly string[]): Promise<void> {
      const columns = { default: labels.map((label, at) => ({ label, pinned: at < 2 })) }
      await page.goto(workflows)
      await page.evaluate(
        (kept) => localStorage.setItem('namespace-workflow-table-columns', kept),
        JSON.stringify(columns),
      )
    },

    /** The ids that the list of runs shows for a query, once it shows all of these. */
    async listed({ query, until }: { query: string; until: readonly string[] }): Promise<string[]> {
      await page.goto(`${workflows}?${new URLSearchParams({ query }).toString()}`)
      const table = page.getByRole('table', { name: 'Workflows' })
      const link = (id: string) => table.getByRole('link', { name: id, exact: true })
      for (const id of until) await reloadUntil(link(id))
      const rows = await table.getByRole('row').all()
      // The first is the heading; the first link of a row is its id.
      return await Promise.all(rows.slice(1).map((row) => row.getByRole('link').first().innerText()))
    },

    async update(name: string, data: object, shot?: string): Promise<void> {
      await choose('Send an Update')
      await submit(/Select an update/i, name, { data, ...(shot !== undefined && { shot }) })
    },

    async signal(name: string, shot?: string): Promise<void> {
      await choose('Send a Signal')
      await submit(/Select a signal/i, name, shot === undefined ? {} : { shot })
    },

    /** To the first event that the UI offers: everything is done once more. */
    async reset(shot?: string): Promise<void> {
      await choose('Reset')
      await dialog
        .getByRole('button')
        .filter({ has: page.getByRole('textbox') })
        .click()
      await page
        .getByRole('option', { name: /WorkflowTaskCompleted/ })
        .first()
        .click()
      await picture(shot)
      await press('Confirm')
    },
  }
}

/** What changes a run, and none of the queries with which the UI looks at it. */
function isAction(request: Request): boolean {
  return (
    request.method() === 'POST' &&
    /\/(signal|update|cancel|terminate|reset)(\/|$)/.test(new URL(request.url()).pathname)
  )
}

function isSoon(locator: Locator, state: 'visible' | 'hidden', timeout = 2_000): Promise<boolean> {
  return locator.waitFor({ state, timeout }).then(
    () => true,
    () => false,
  )
}
