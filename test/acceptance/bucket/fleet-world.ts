import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parse } from 'csv-parse/sync'
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest'
import { type ExportReport, isPublished } from '../../../core/exports/report.ts'
import type { FileStore } from '../../../core/storage/file-store.ts'
import { openFiles } from '../../../worker/files.ts'
import { readPlaces } from '../../../worker/settings/settings.ts'
import { callCommand } from '../../system/command-line/call-command.ts'
import { askPostgres, startPostgres, type Postgres } from '../../system/destinations/postgres-server.ts'
import { startCommand, startTestWorker, until, workerListens, type World } from '../../system/export/world.ts'
import { environmentOf, startGateway } from './gateway.ts'

/** A bucket and a PostgreSQL server for the tests of a file, and workers without a common disk. */
export function createFleet() {
  let gateway: Awaited<ReturnType<typeof startGateway>>
  let postgres: Postgres
  let stateUrl: string
  beforeAll(async () => {
    ;[gateway, postgres] = await Promise.all([startGateway(), startPostgres()])
    stateUrl = await postgres.createDatabase()
  })
  afterAll(async () => {
    await gateway.close()
    await postgres.close()
  })

  /** The settings of a fleet's workers; each prefix is another fleet's. */
  const fleetOf = (world: World) => ({
    ...environmentOf(gateway.endpoint),
    CONNECTOR_STATE_URL: stateUrl,
    CONNECTOR_FILES_URL: `s3://exports/${world.workspace}`,
  })

  /** The settings of a machine with an empty folder, which no worker uses. */
  const newMachine = async (world: World) => ({ ...fleetOf(world), CONNECTOR_DATA_DIR: await newFolder() })

  /** A worker in this process, with an empty data folder of its own; it is stopped with the test at the latest. */
  async function startMember(world: World, more: Record<string, string> = {}) {
    const machine = await newMachine(world)
    const worker = await startTestWorker(world, { ...machine, ...more })
    return { folder: machine.CONNECTOR_DATA_DIR, stop: () => worker.stop() }
  }

  /** The same in a process, which can be killed. */
  async function startMachine(world: World, more: Record<string, string> = {}) {
    const env = { ...(await newMachine(world)), ...more }
    const folder = env.CONNECTOR_DATA_DIR
    const member = startCommand(world, ['worker'], { env })
    const isThere = async () => {
      if (member.child.exitCode !== null) throw new Error(member.texts.stderr)
      const rows = await askPostgres(
        stateUrl,
        `select 1 from "connector_${world.workspace}".workers where files_place like '${folder} %'`,
      ).catch(() => [])
      return (rows ?? []).length > 0
    }
    await until(isThere)
    await workerListens(world)
    return {
      child: member.child,
      /** Kills it, and its machine with the disk. */
      async lose() {
        member.child.kill('SIGKILL')
        await member.ended
        await rm(folder, { recursive: true, force: true })
      },
    }
  }

  /** Half a minute later, or in a backup: no worker was seen just now. */
  const forgetWorkers = (world: World) =>
    askPostgres(stateUrl, `delete from "connector_${world.workspace}".workers`)

  const openStore = (world: World) =>
    openFiles(readPlaces({ env: { ...world.env, ...fleetOf(world) }, cwd: world.dataDir }))!

  /** Expects that the run published so many records, each once, and that `verify` finds it proven. */
  async function expectEachOnce(world: World, report: ExportReport, resource: string, count: number) {
    const { times, manifest } = await timesPublished(openStore(world), report, resource)
    expect({ records: times.length, twice: times.filter((one) => one > 1).length }).toEqual({
      records: count,
      twice: 0,
    })
    const verified = await callCommand(world, ['verify', manifest], { env: fleetOf(world) })
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining('proven') })
  }

  return {
    fleetOf,
    newFolder,
    newMachine,
    startMember,
    startMachine,
    forgetWorkers,
    openStore,
    expectEachOnce,
    get bucket() {
      return gateway.bucket
    },
    get endpoint() {
      return gateway.endpoint
    },
    get postgres() {
      return postgres
    },
    get stateUrl() {
      return stateUrl
    },
  }
}

async function newFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** How often each record is in the published tables. */
async function timesPublished(store: FileStore, report: ExportReport, resource: string) {
  const [published] = report.exports.filter((one) => one.resource === resource).filter(isPublished)
  if (published?.manifest === undefined || published.manifest === null)
    throw new Error(JSON.stringify(report))
  const { where, manifest } = published
  const files = (await store.list(store.pathOf(where)!)).filter(({ path }) =>
    new RegExp(`/${resource}-[0-9a-f]{12}\\.csv$`).test(path),
  )
  const times = new Map<string, number>()
  for (const { path } of files)
    for (const { id } of parse<{ id: string }>(await text((await store.open(path))!), { columns: true }))
      times.set(id, (times.get(id) ?? 0) + 1)
  return { times: [...times.values()], manifest }
}
