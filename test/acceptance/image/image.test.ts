import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Engine, startEngine } from '../compose/engine.ts'
import { connectorImage, makeImages } from '../compose/images/make-images.ts'
import { createWorld, until } from '../../system/export/world.ts'

let engine: Engine

beforeAll(async () => {
  engine = await startEngine()
  await makeImages(engine, ['node'])
}, 900_000)
afterAll(() => engine?.close())

test('the image runs any command, and without one a worker that is healthy and ends cleanly', async () => {
  const { podman } = engine
  const world = await createWorld({ counts: { customers: 300, plans: 20 } })
  const name = world.workspace
  const variables = Object.entries({ ...world.env, CONNECTOR_DATA_DIR: '/data' })
  const options = ['--network=host', ...variables.flatMap(([key, value]) => ['--env', `${key}=${value}`])]
  expect(await podman('run', '--rm', connectorImage, '--help')).toContain('Usage: connector ')
  await podman('run', '--detach', '--name', name, ...options, connectorImage)
  try {
    await until(() =>
      podman('healthcheck', 'run', name).then(
        () => true,
        () => false,
      ),
    )
    const exported = await podman('exec', name, 'connector', 'export', 'plans', '--json')
    expect(JSON.parse(exported)).toMatchObject({
      verdict: 'proven',
      exports: [{ records: 20, folder: expect.stringMatching(/^\/data\//) }],
    })
    expect(await podman('exec', name, 'connector', 'export', 'plans', '--detach')).toMatch(
      /^Follow it with: connector run watch export-plans-/m,
    )
    await podman('stop', '--time', '60', name)
    expect(await podman('inspect', '--format', '{{.State.ExitCode}}', name)).toBe('0\n')
  } finally {
    await podman('rm', '--force', '--volumes', name)
  }
}, 300_000)
