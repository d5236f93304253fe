import { once } from 'node:events'
import { startDevServer } from '../../../../scripts/dev-server/start-dev-server.ts'

// Starts or finds the dev server of the folder, says which, and keeps it until it is told to stop.
const [dataDir = '', binary = ''] = process.argv.slice(2)
const server = await startDevServer({ dataDir, binary: () => Promise.resolve(binary), ui: false })
const awake = setInterval(() => undefined, 1_000)
const told = once(process, 'SIGTERM')
console.error(JSON.stringify(server))
await told
await server.stop()
clearInterval(awake)
