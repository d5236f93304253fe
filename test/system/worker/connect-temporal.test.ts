import { freePorts } from '../../../worker/free-ports.ts'
import { startDevServer } from '../../../scripts/dev-server/start-dev-server.ts'
import { createWorld, startCommand } from '../export/world.ts'
import { inject, onTestFinished, test, expect } from 'vitest'
import { connectTemporal, NoRootCertificatesError } from '../../../worker/start-worker.ts'

test('a system without root certificates gets a message that says what to install', async () => {
  const { SSL_CERT_FILE, SSL_CERT_DIR } = process.env
  onTestFinished(() => {
    for (const [name, value] of Object.entries({ SSL_CERT_FILE, SSL_CERT_DIR })) {
      delete process.env[name]
      if (value !== undefined) process.env[name] = value
    }
  })
  // As in an image without them.
  Object.assign(process.env, { SSL_CERT_FILE: '/nowhere', SSL_CERT_DIR: '/nowhere' })
  const connecting = connectTemporal({ address: inject('temporalAddress'), tls: {} })
  const error: unknown = await connecting.catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(NoRootCertificatesError)
  expect(error).toMatchObject({ hint: expect.stringContaining('ca-certificates') })
})

test(
  'a worker that starts before Temporal says so in one log line each try, and listens once it is there',
  { tags: ['long'] },
  async () => {
    const world = await createWorld()
    const [grpc = 0, ui = 0] = await freePorts(2)
    const address = `127.0.0.1:${grpc}`
    const worker = startCommand(world, ['worker'], { env: { TEMPORAL_ADDRESS: address } })
    await worker.says('Temporal does not answer')
    const binary = async () => inject('temporalBinary')
    const server = await startDevServer({
      dataDir: world.dataDir,
      binary,
      choosePorts: () => Promise.resolve({ grpc, ui }),
    })
    onTestFinished(() => server.stop())
    await worker.says('"listening"')
    const lines = worker.texts.stderr.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line) as unknown)[0]).toMatchObject({
      level: 'warn',
      message: `Temporal does not answer at ${address}`,
      retryInSeconds: 1,
    })
  },
)
