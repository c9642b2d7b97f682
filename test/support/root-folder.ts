import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { makeFolder, SCRATCH, SHARED } from './scratch.ts'

/** A copy of the file system of this machine, in which packages can be installed. */
export async function openRootFolder() {
  const folder = makeFolder()
  const root = join(folder, 'root')
  const mounts = `
    mount -t tmpfs -o size=1g tmpfs ${folder}
    mkdir ${folder}/upper ${folder}/work ${root}
    mount -t overlay overlay -o lowerdir=/,upperdir=${folder}/upper,workdir=${folder}/work ${root}
    mount --rbind /proc ${root}/proc
    mount --rbind /dev ${root}/dev
    mkdir -p ${root}${SCRATCH} ${root}${SHARED}
    mount --bind ${SCRATCH} ${root}${SCRATCH}
    mount --bind ${SHARED} ${root}${SHARED}
    echo ready
    exec cat`
  const holder = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-ec', mounts],
    // The holder ends with this process, which closes its standard input.
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  const [line] = (await Promise.race([once(holder.stdout, 'data'), once(holder, 'exit')])) as [
    unknown,
  ]
  if (!String(line).includes('ready'))
    throw new Error('No folder can be mounted. Run this as root.')
  const enter = ['--mount', `--target=${holder.pid}`]

  return {
    /** Runs a command inside to its end. */
    run(...command: string[]): { status: number | null; output: string } {
      const { status, stdout, stderr } = spawnSync(
        'nsenter',
        [...enter, 'chroot', root, ...command],
        {
          encoding: 'utf8',
        },
      )
      return { status, output: stdout + stderr }
    },
    /** Starts a command inside. */
    spawn(...command: string[]): ChildProcess {
      return spawn('nsenter', [...enter, 'chroot', root, ...command], {
        stdio: ['ignore', 'pipe', 'pipe'],
      })
    },
    /** Makes everything read-only but `/dev`, `/proc`, `/tmp` and one other folder. */
    protect(writable: string): void {
      const script = `
        mount --bind ${root}${writable} ${root}${writable}
        mount -t tmpfs tmpfs ${root}/tmp
        mount -o remount,bind,ro ${root}`
      const { status, stderr } = spawnSync('nsenter', [...enter, 'sh', '-ec', script], {
        encoding: 'utf8',
      })
      if (status !== 0) throw new Error(stderr)
    },
    /** Undoes `protect` of the same folder. */
    unprotect(writable: string): void {
      const script = `umount ${root}${writable} ${root}/tmp; mount -o remount,bind,rw ${root}`
      const { status, stderr } = spawnSync('nsenter', [...enter, 'sh', '-ec', script], {
        encoding: 'utf8',
      })
      if (status !== 0) throw new Error(stderr)
    },
    async [Symbol.asyncDispose]() {
      holder.stdin.end()
      await once(holder, 'exit')
    },
  }
}
