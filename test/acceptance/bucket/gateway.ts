import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isOpen } from '../../../scripts/dev-server/readiness.ts'
import { freePorts } from '../../../worker/free-ports.ts'
import { versitygw } from './versitygw.ts'

export const keys = { accessKeyId: 'tests', secretAccessKey: 'secret-of-the-tests' } as const

/** A real object store on 127.0.0.1 with one bucket, `exports`. */
export async function startGateway({ readonly = false } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-'))
  mkdirSync(join(folder, 'root/exports'), { recursive: true })
  const [port] = await freePorts(1)
  const address = `127.0.0.1:${port}`
  const mode = readonly ? ['--readonly'] : []
  const words = ['--port', address, '--keep-alive', '--quiet', ...mode, 'posix']
  const gateway = spawn(versitygw(), [...words, join(folder, 'root')], {
    env: { ROOT_ACCESS_KEY: keys.accessKeyId, ROOT_SECRET_KEY: keys.secretAccessKey },
    stdio: 'ignore',
  })
  const ended = once(gateway, 'exit')
  while (!(await isOpen(address))) {
    if (gateway.exitCode !== null) throw new Error(`The gateway ended with ${gateway.exitCode}.`)
    await sleep(20)
  }
  return {
    endpoint: `http://${address}`,
    /** The files of the bucket. */
    bucket: join(folder, 'root/exports'),
    async close() {
      gateway.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** The SDK's own variables for an endpoint. */
export const environmentOf = (endpoint: string) => ({
  AWS_ENDPOINT_URL_S3: endpoint,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: keys.accessKeyId,
  AWS_SECRET_ACCESS_KEY: keys.secretAccessKey,
})
