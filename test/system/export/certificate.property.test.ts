/** The two checkers of an export accept what is proven, and nothing else. CERTIFICATES=10000 makes a soak of it. */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkCertificate } from '../../../core/exports/certificate-check.ts'
import { sumOf } from '../../../core/reading/certificate.ts'
import { createFolderStore } from '../../../core/storage/folder-store.ts'
import { subscriptions } from '../../../core/billing/resources/subscriptions.ts'
import { createRandom } from '../../core/reading/drifting-list.ts'
import { hiding, rows } from '../../core/reading/hiding-service.ts'
import { keysOf, readThrough } from '../../core/reading/read-through.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import {
  certificates,
  type CertifiedExport,
  certifiedExports,
  fitCounts,
  miscounted,
  mutants,
  rowsBefore,
  seed,
  spellOtherwise,
  type Spelling,
  toCertified,
  writeCertified,
} from './certified-exports.ts'
import { hasPython, judgeAllByPython } from './python-checker.ts'

/** Judges exports, in batches that one process of Python takes. */
async function createJudge() {
  const root = await temporaryFolder()
  let batch: { folder: string; name: string; answer: string }[] = []
  let folders = 0
  /** Python judges a batch while the next one is made. */
  let judging: Promise<void> = Promise.resolve()

  /** @param name of a mutant */
  async function add(exported: CertifiedExport, name = '', spelling?: Spelling): Promise<void> {
    const folder = join(root, String(folders++))
    const manifest = await writeCertified(folder, exported, spelling)
    const problem = await checkCertificate(createFolderStore(folder), '', manifest)
    expect(problem === undefined, `${name}: ${problem}`).toBe(name === '')
    const accepted = exported.verdict === 'proven' ? 'ACCEPT' : 'UNPROVEN'
    batch.push({ folder, name, answer: name === '' ? accepted : 'REJECT' })
    if (batch.length >= 100) await judgeBatch()
  }

  /** Ends when the batch before is judged. */
  async function judgeBatch(): Promise<void> {
    await judging
    judging = judge(batch)
    // What it throws is thrown where it is awaited.
    judging.catch(() => undefined)
    batch = []
  }

  async function judge(exports: typeof batch): Promise<void> {
    if (!hasPython || exports.length === 0) return
    const said = await judgeAllByPython(exports.map(({ folder }) => folder))
    for (const [at, sentence] of said.entries())
      expect(sentence.split(' ')[0], `${exports[at]?.name}: ${sentence}`).toBe(exports[at]?.answer)
    for (const { folder } of exports) await rm(folder, { recursive: true })
  }

  async function finish(): Promise<void> {
    await judgeBatch()
    await judging
  }

  return { add, finish }
}

/** Both checkers accept those without a name, and reject what has the name of a forgery. */
async function expectJudged(...exports: readonly (readonly [exported: CertifiedExport, name?: string])[]) {
  const judge = await createJudge()
  for (const [exported, name] of exports) await judge.add(exported, name)
  await judge.finish()
}

test(
  'exports of lists that change while they are read are accepted, however their JSON is spelled, and every change that makes their claim false is rejected',
  { tags: ['long'], timeout: 60_000 + certificates * 1_000 },
  async () => {
    const random = createRandom(seed)
    const rejected = Object.fromEntries(Object.keys(mutants).map((name) => [name, 0]))
    const judge = await createJudge()
    let [proven, unproven, changed] = [0, 0, 0]
    for await (const exported of certifiedExports()) {
      await judge.add(exported)
      if (exported.verdict === 'unproven') {
        unproven++
        continue
      }
      proven++
      if (proven % 10 === 0) await judge.add(exported, '', { stringify: spellOtherwise })
      // Few exports allow some of them, so the rarest is tried first.
      const rarest = Object.keys(mutants).toSorted((a, b) => rejected[a]! - rejected[b]!)
      const name = rarest.find((one) => mutants[one]!(exported, random))
      if (name !== undefined) {
        if (name !== miscounted) fitCounts(exported)
        rejected[name]! += 1
        changed++
        await judge.add(exported, name)
      }
      if (changed >= certificates) break
    }
    await judge.finish()
    console.log(`seed ${seed}: ${proven} proven, ${unproven} unproven, rejected ${JSON.stringify(rejected)}`)
    expect(Math.min(...Object.values(rejected))).toBeGreaterThan(certificates / 200)
  },
)

test('an export from a service whose links name no page is accepted', async () => {
  const { fetchPage } = hiding(rows(40), [])
  const taken = await readThrough({
    fetchPage: async (request) => ({ ...(await fetchPage(request)), next: '/list/?cursor=abc' }),
  })
  expect(taken.outcome).toMatchObject({ verdict: 'proven', records: 40 })
  await expectJudged([toCertified(taken)])
})

test('an export is accepted whose process died before and after the last look at the statuses', async () => {
  const judge = await createJudge()
  for (let turn = 1; turn <= 10; turn++) {
    const options = { resource: subscriptions, now: () => Date.parse('2026-11-21T12:00:00Z') }
    const taken = await readThrough(
      { ...options, ...hiding(rows(250), turn % 2 === 0 ? ['cancelled'] : []) },
      { crash: 0.2, random: createRandom(turn) },
    )
    expect(taken.outcome).toMatchObject({ verdict: 'proven', records: 250 })
    expect(taken.certificate.split('"looked"')).toHaveLength(2)
    const exported = toCertified(taken)
    await judge.add(exported)
    await judge.add(leaveFirst(exported, 0), 'a record of a list with statuses has no row, as if met before')
    if (!taken.outcome.hiddenFound) {
      const lines = exported.lines.filter((line) => !('looked' in line))
      for (const line of lines) delete line['statuses']
      await judge.add({ ...exported, lines }, 'the looks are missing')
      continue
    }
    const unsaid = { ...exported.facts, hiddenFound: false, statusCheck: 'clear' as const }
    await judge.add({ ...exported, facts: unsaid }, 'a list that hides records is said to hide none')
    await judge.add(withoutOldest(exported, 'cancelled'), 'a status was read down to a time only')
    const first = exported.lines.findIndex((line) => 'looked' in line)
    const lines = exported.lines.slice(0, first + 1)
    const count = lines.reduce((sum, { taken: more = 0 }) => sum + Number(more), 0)
    const windows = lines.filter(({ newest }) => typeof newest === 'string').length
    const forged = { ...exported, lines, rows: exported.rows.slice(0, count), windows }
    await judge.add(forged, 'the statuses were not read although a record was hidden')
    const twice = { ...forged, lines: [...lines, { ...lines.at(-1), hidden: false }], facts: unsaid }
    await judge.add(twice, 'a second look says that none was hidden')
  }
  await judge.finish()
})

/** As if the oldest but one of the records that the first window behind a place took had no row. */
function leaveFirst(exported: CertifiedExport, behind: number): CertifiedExport {
  const lines = structuredClone(exported.lines)
  const place = lines.findIndex((line, at) => at >= behind && Number(line['taken']) > 1)
  const [line, from] = [lines[place]!, rowsBefore(exported, place)]
  const taken = exported.rows.slice(from, from + Number(line['taken'])).toSpliced(-2, 1)
  Object.assign(line, { taken: taken.length, left: 1, keys: sumOf(taken.map(keysOf)) })
  return { ...exported, lines, rows: exported.rows.toSpliced(from, taken.length + 1, ...taken) }
}

test('a record that a status shows first is not left as if it had been met before', async () => {
  const options = { resource: subscriptions, now: () => Date.parse('2026-11-21T12:00:00Z') }
  const all = ['active', 'paused', 'cancelled', 'finalized']
  const exported = toCertified(await readThrough({ ...options, ...hiding(rows(250), all) }))
  await expectJudged([exported], [leaveFirst(exported, 0), 'a record that was never met before is left'])
})

/** As if a status, all of which one window shows, had been read as a range that ends above its oldest record. */
function withoutOldest(exported: CertifiedExport, status: string): CertifiedExport {
  const lines = structuredClone(exported.lines)
  const place = lines.findIndex((line) => line['status'] === status)
  const [range, window] = lines.slice(place) as [Record<string, unknown>, Record<string, unknown>]
  const end = lines.findIndex((line, at) => at > place && 'range' in line)
  const spliced = lines.splice(place + 2, (end < 0 ? lines.length : end) - place - 2)
  const before = rowsBefore(exported, place)
  const taken = exported.rows.slice(before, before + Number(window['taken']) - 1)
  range['range'] = { upTo: null, downTo: window['oldest'] }
  Object.assign(window, { beyond: 1, taken: taken.length, keys: sumOf(taken.map(keysOf)) })
  const rows = exported.rows.toSpliced(before + taken.length, 1)
  return { ...exported, lines, rows, windows: exported.windows - spliced.length }
}

test('an export is accepted whose list was empty now and then while it was read', async () => {
  const judge = await createJudge()
  const random = createRandom(seed)
  const [all, proven] = [rows(3), { empty: 0, other: 0 }]
  for (let read = 1; read <= 50; read++) {
    let served = Date.parse('2026-11-21T12:00:00Z')
    const taken = await readThrough(
      {
        fetchPage: async (request) => {
          const now = all.filter(() => random() < 0.3)
          return { ...(await hiding(now, []).fetchPage(request)), servedAt: (served += 1_000) }
        },
      },
      { crash: 0.1, random },
    )
    if (taken.outcome.verdict !== 'proven') continue
    proven[taken.certificate.includes('"records":0') ? 'empty' : 'other']++
    await judge.add(toCertified(taken))
  }
  expect(proven.empty).toBeGreaterThan(12)
  await judge.finish()
})

const fieldsOfEnds =
  'certificate resource workspace testMode mode filters key changedSince end reasons completeThrough records windows'

test('an export is rejected whose certificate lacks any field of its first or its last line', async () => {
  const exported = toCertified(await readThrough(hiding(rows(40), [])))
  const lacking = fieldsOfEnds.split(' ').map((lacks) => [{ ...exported, lacks }, `no ${lacks}`] as const)
  await expectJudged([exported], ...lacking)
})

const emptyPage = {
  page: 1,
  size: 100,
  records: 0,
  newest: null,
  oldest: null,
  last: true,
  taken: 0,
  keys: sumOf([]),
}

/** What a forger changes in an export of 250 records in three windows, of which the second is the third line. */
const forgeries: Record<string, (exported: CertifiedExport) => void> = {
  'a mark that says no': ({ lines }) => Object.assign(lines[2]!, { last: false }),
  'a count that is none': ({ lines }) => Object.assign(lines[0]!, { lag: 0.5 }),
  'a field that no window has': ({ lines }) => Object.assign(lines[2]!, { status: null }),
  'a line of two kinds': ({ lines }) => Object.assign(lines[2]!, { swept: lines[2]!['newest'] }),
  'an empty page that shows records': ({ lines }) => lines.splice(1, 0, { ...emptyPage, newer: 3 }),
  'a first window whose newest record has no row': ({ lines }) =>
    Object.assign(lines[1]!, { newest: '2030-01-01T00:00:00Z' }),
  'statuses that were sampled for one range alone': ({ lines }) => {
    const [range, bound] = [lines[0]!, '2030-01-01T00:00:00Z']
    lines[0] = { ...range, range: { upTo: bound, downTo: null } }
    const first = { ...range, statuses: ['active'], range: { upTo: null, downTo: bound } }
    lines.unshift(first, { ...emptyPage, descending: true }, emptyPage)
  },
  'statuses that were sampled again before the list was read': (exported) => {
    const { lines, facts } = exported
    lines[0]!['statuses'] = ['active']
    const looked = { looked: ['active'], hidden: false }
    lines.splice(1, 0, { ...emptyPage, descending: true }, emptyPage, looked)
    exported.facts = { ...facts, statusCheck: 'clear' }
  },
  'an order that the records do not show': (exported) => {
    exported.forge = (manifest) => (manifest.ordering = 'position')
  },
  'two rows below in one': ({ rows: all }) => {
    const row = all.find(({ contacts }) => contacts.length === 2)!
    row.contacts = [row.contacts.join(' ')]
  },
  'two certificates': (exported) => {
    exported.forge = ({ certificate }) => certificate!.files.push(certificate!.files[0]!)
  },
  'the rows below in the ids of their records': (exported) => {
    exported.rows = exported.rows.map((row) => ({ ...row, id: keysOf(row), contacts: [] }))
    exported.forge = ({ tables, totals }) => {
      tables.pop()
      delete totals.columns['customer_contacts.amount']
    }
  },
  'a second table of records': (exported) => {
    exported.forge = ({ tables }) =>
      tables.push({
        ...tables[0]!,
        name: 'more',
        columns: tables[0]!.columns.slice(0, 1),
        rows: 0,
        files: [],
      })
  },
}

test('an export is rejected that is not what its certificate shows, or whose lines have another form', async () => {
  const taken = await readThrough(hiding(rows(250), []))
  const forged = Object.entries(forgeries).map(([name, forge]) => {
    const exported = toCertified(taken)
    forge(exported)
    return [exported, name] as const
  })
  await expectJudged([toCertified(taken)], ...forged)
})

test('an export is accepted whose ids have any text', async () => {
  for (const id of ['s;7', 's;1 2', String.raw`s\7`, 's\ns;', 's"7, or']) {
    const named = await readThrough(hiding(rows(40).with(7, { ...rows(40)[7]!, id }), []))
    await expectJudged([toCertified(named)])
  }
})

/** Records of one time, more of each status than a window holds. */
const tied = rows(1_000).map((row) => ({ ...row, created: '2026-01-01T00:00:00Z' }))

test('an export is accepted that swept records of one time and does not show their times', async () => {
  const { fetchPage } = hiding(tied, [])
  const taken = await readThrough({ fetchPage })
  expect(taken.outcome.verdict).toBe('proven')
  expect(taken.certificate).toContain('"swept"')
  const forge: CertifiedExport['forge'] = (manifest) => {
    manifest.hashed = ['customers.created']
    delete manifest.totals.created
  }
  const exported = { ...toCertified(taken), forge }
  const lines = structuredClone(exported.lines)
  for (const line of lines) if ('swept' in line) line['places'] = [1_001, 1_001, 1_001]
  await expectJudged([exported], [{ ...exported, lines }, 'sweeps showed more records than were taken'])
})

test('an export is accepted whose records have times that are centuries from now', async () => {
  const far = tied.map((row) => ({ ...row, created: '9999-01-01T00:00:00.001024Z' }))
  const swept = await readThrough(hiding(far, []))
  expect(swept.certificate).toContain('"swept"')
  // No number holds these, so they have no place in the list, but rows and totals have them.
  const further = [
    '0001-01-01T00:00:00.000001Z',
    '9999-12-31T23:59:59.999998Z',
    '9999-12-31T23:59:59.999999Z',
  ]
  const unplaced = further.map((created, at) => ({ ...rows(3)[at]!, id: `far${at}`, created }))
  const taken = await readThrough(hiding([...rows(3), ...unplaced], []))
  expect(taken.outcome).toMatchObject({ verdict: 'unproven', records: 6 })
  const exported = toCertified(taken)
  const forge: CertifiedExport['forge'] = ({ totals }) =>
    Object.assign(totals.created!, { newest: further[1] })
  const forged = { ...exported, forge }
  await expectJudged([toCertified(swept)], [exported], [forged, 'a newest record of another time'])
})

test('an export without records is rejected that says when they were created', async () => {
  const exported = toCertified(await readThrough(hiding([], [])))
  const forged = ['never', '9999-12-31T23:59:59.999999Z'].map((time) => {
    const forge: CertifiedExport['forge'] = ({ totals }) => (totals.created = { oldest: time, newest: time })
    return [{ ...exported, forge }, `created ${time}`] as const
  })
  await expectJudged([exported], ...forged)
})

test('an export is accepted whose list hides records of one time under several statuses', async () => {
  const options = { resource: subscriptions, now: () => Date.parse('2026-11-21T12:00:00Z') }
  const taken = await readThrough({ ...options, ...hiding(tied, ['paused', 'cancelled']) })
  expect(taken.outcome).toMatchObject({ verdict: 'proven', records: 1_000 })
  expect(taken.certificate.split('"swept"')).toHaveLength(1 + 5)
  await expectJudged([toCertified(taken)])
})

test('an unproven export that has an id twice is called unproven, and not rejected', async () => {
  const all = rows(250)
  const taken = await readThrough(hiding(all.with(7, { ...all[7]!, id: 's99' }), []))
  expect(taken.outcome).toMatchObject({ verdict: 'unproven', records: 250 })
  await expectJudged([toCertified(taken)])
})
