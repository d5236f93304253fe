import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { verifyExport } from '../../../core/destinations/files/verify.ts'
import { keepCertificate } from '../../../core/destinations/warehouse/certificate.ts'
import { writePart } from '../../core/exports/write-part.ts'
import { day, readOn, useWarehouse } from '../../core/destinations/use-warehouse.ts'
import { usePostgres } from './use-postgres.ts'

const { harness, toPublication, ask } = useWarehouse(usePostgres())

const withCertificate = async (text = '{"page":1}\n') => {
  const { folder } = await toPublication('x', [])
  await mkdir(folder, { recursive: true })
  const path = join(folder, 'certificate.part')
  return [await writePart({ table: 'certificate', path, text, rows: 1 })]
}

test('names the place and the checksum of the certificate, which claims what is true of the warehouse', async () => {
  const certificate = await withCertificate()
  const publication = await toPublication('changes', [{ id: 'a' }], {
    mode: 'incremental',
    facts: readOn(2, { changedSince: day(1) }),
    certificate,
  })
  const first = await harness.destination.publish(publication)
  const bytes = await readFile((await keepCertificate(publication, first.manifest))!, 'utf8')
  // As an attempt that died right after its commit is repeated.
  const { manifest } = await harness.destination.publish(publication)
  const place = (await keepCertificate(publication, manifest))!
  // The page of the run has its SHA-256.
  expect(await readFile(place, 'utf8')).toBe(bytes)
  const written = await readFile(join(dirname(place), 'certificate.jsonl'), 'utf8')
  expect(written.split('\n')).toEqual([
    expect.stringMatching(/^\{"certificate":1,.*"mode":"incremental"/),
    '{"page":1}',
    expect.stringMatching(/^\{"end":"unproven","reasons":\[".+"\],"completeThrough":null,/),
    '',
  ])
  const rows = await ask(`select cast(manifest as text) as manifest from ${harness.schema}._exports`)
  expect(JSON.parse(await readFile(place, 'utf8'))).toEqual(JSON.parse(String(rows[0]!['manifest'])))
  const sha256 = createHash('sha256').update(written).digest('hex')
  expect(manifest.certificate).toEqual({
    rows: 3,
    files: [{ path: 'certificate.jsonl', rows: 3, bytes: written.length, sha256 }],
    folder: relative(publication.folder, dirname(place)),
  })
})

test('lets an attempt write the certificate while an abandoned one still does', async () => {
  const certificate = await withCertificate(`${' '.repeat(30_000_000)}{"page":1}\n`)
  const publication = await toPublication('first', [{ id: 'a' }], { certificate })
  const { manifest } = await harness.destination.publish(publication)
  const abandoned = keepCertificate(publication, manifest)
  const beside = join(publication.folder, dirname(manifest.certificate!.folder!))
  await expect.poll(() => readdir(beside).catch(() => []), { interval: 1 }).toHaveLength(1)
  const [place] = await Promise.all([keepCertificate(publication, manifest), abandoned])
  expect(await verifyExport(dirname(place!))).toMatchObject({ problems: [] })
})

test('writes no other certificate over the one that it names', async () => {
  const certificate = await withCertificate()
  const publication = await toPublication('first', [{ id: 'a' }], { certificate })
  const { manifest } = await harness.destination.publish(publication)
  const place = (await keepCertificate(publication, manifest))!
  // Of the same rows, as those of another attempt to read them.
  const other = { ...publication, certificate: await withCertificate('{"page":2}\n') }
  const again = await harness.destination.publish(other)
  await expect(keepCertificate(other, again.manifest)).rejects.toMatchObject({
    name: 'AlreadyPublishedError',
  })
  expect(await verifyExport(dirname(place))).toMatchObject({ problems: [] })
})

test('says of a certificate that it cannot write that the rows are there', async () => {
  const certificate = await withCertificate()
  const publication = await toPublication('first', [{ id: 'a' }], { certificate })
  const { manifest } = await harness.destination.publish(publication)
  await writeFile(join(publication.folder, manifest.destination), 'a file in the way')
  await expect(keepCertificate(publication, manifest)).rejects.toMatchObject({
    name: 'UnwritableError',
    message: expect.stringMatching(/The rows are in the warehouse, .* run it again\.$/),
  })
})
