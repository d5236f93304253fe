// The entry of `npm run connector`: with the compile cache enabled before the first file in TypeScript, no later start
// parses any. The package, which is plain JavaScript, begins with connector.js.
import './refuse-old-node.js'
import './compile-cache.js'
await import('./connector.ts')
