import { registerHooks } from 'node:module'

// Preloaded into a command: prints at its end how many modules of the SDK it loaded.
let loaded = 0
registerHooks({
  load(url, context, next) {
    if (/node_modules\/@(aws-sdk|smithy)\//.test(url)) loaded += 1
    return next(url, context)
  },
})
process.on('exit', () => process.stderr.write(`SDK modules: ${loaded}\n`))
