// npm run bench -- export|import|peers [options]. `--help` after the name prints what it measures and its options.
const benches: Readonly<Record<string, () => Promise<unknown>>> = {
  export: () => import('./export.ts'),
  import: () => import('./import.ts'),
  peers: () => import('./peers.ts'),
}

const bench = benches[process.argv[2] ?? '']
if (bench === undefined) {
  console.error(`Name what to measure: npm run bench -- ${Object.keys(benches).join('|')} [--help]`)
  process.exit(2)
}
await bench()
